"""The other end of netio sockets: datagrams as lines of hex. What comes in is printed, what is read is sent.

The first argument is the path of its own socket, the second that of the instance.
"""
import os
import socket
import sys
import threading

own, other = sys.argv[1:]
peer = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
peer.bind(own)
print("ready", flush=True)


def receive():
    while True:
        print(peer.recv(70000).hex(), flush=True)


threading.Thread(target=receive, daemon=True).start()
for line in sys.stdin:
    peer.sendto(bytes.fromhex(line.strip()), other)
os.unlink(own)
