"""Frames of a network device as lines of hex: those that come in are printed, those that are read are sent.

What is sent begins with a struct virtio_net_hdr (10 bytes), what is printed does not; tags that the kernel took out of a
frame are put back.
"""
import socket
import struct
import sys
import threading

SOL_PACKET, PACKET_AUXDATA, PACKET_VNET_HDR, PACKET_IGNORE_OUTGOING, VLAN_VALID = 263, 8, 15, 23, 1 << 4

wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
wire.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
wire.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
wire.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
wire.bind((sys.argv[1], 0))
print("ready", flush=True)


def receive():
    while True:
        data, controls, _, _ = wire.recvmsg(70000, 256)
        frame = data[10:]
        for level, kind, aux in controls:
            if level == SOL_PACKET and kind == PACKET_AUXDATA:
                status, _, _, _, _, tag, tag_type = struct.unpack("IIIHHHH", aux[:20])
                if status & VLAN_VALID:
                    frame = frame[:12] + struct.pack("!HH", tag_type, tag) + frame[12:]
        print(frame.hex(), flush=True)


threading.Thread(target=receive, daemon=True).start()
for line in sys.stdin:
    wire.send(bytes.fromhex(line.strip()))
