"""An IOU instance's side of its netio socket: datagrams as lines of hex. What comes in is printed, what is read is sent.

Arguments: the directory of the sockets, its own id, the id of the other one. The line `stop` has it read no more datagrams
until the line `go`.
"""
import os
import socket
import sys
import threading

directory, own, other = sys.argv[1:]
path = f"{directory}/{own}"
instance = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
if os.path.exists(path):
    os.unlink(path)
instance.bind(path)
print("ready", flush=True)
going = threading.Event()
going.set()


def receive():
    while True:
        datagram = instance.recv(70000)
        going.wait()
        print(datagram.hex(), flush=True)


threading.Thread(target=receive, daemon=True).start()
for line in sys.stdin:
    if line == "stop\n":
        going.clear()
    elif line == "go\n":
        going.set()
    else:
        instance.sendto(bytes.fromhex(line), f"{directory}/{other}")
os.unlink(path)
