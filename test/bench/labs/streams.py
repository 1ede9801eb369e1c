"""One TCP stream: `streams.py sink ADDRESS PORT` serves, `streams.py up|down ADDRESS PORT SECONDS` prints the Mbit/s that arrived."""
import socket
import sys
import threading
import time

mode, address, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
piece = bytearray(256 * 1024)


def take(connection):
    """Counts what arrives from the first byte on; the figure is that of the receiver."""
    total, began = connection.recv_into(piece), time.monotonic()
    while count := connection.recv_into(piece):
        total += count
    return total * 8 / (time.monotonic() - began) / 1e6


def give(connection, seconds):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        connection.sendall(piece)
    connection.shutdown(socket.SHUT_WR)


def serve(connection):
    command = connection.recv(16).decode().split()
    connection.sendall(b'.')
    if command[0] == 'down':
        give(connection, float(command[1]))
        connection.recv(1)
    else:
        connection.sendall(f'{take(connection):.0f}'.encode())
    connection.close()


if mode == 'sink':
    with socket.create_server((address, port)) as server:
        print('ready', flush=True)
        while True:
            threading.Thread(target=serve, args=(server.accept()[0],), daemon=True).start()
else:
    connection = socket.create_connection((address, port), 10)
    connection.settimeout(60)
    connection.sendall(f'{mode} {sys.argv[4]}'.encode())
    connection.recv(1)
    if mode == 'down':
        print(round(take(connection)))
    else:
        give(connection, float(sys.argv[4]))
        print(connection.recv(16).decode())
