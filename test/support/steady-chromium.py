#!/usr/bin/env python3
"""Runs the Chromium of STEADY_CHROMIUM without netlink sockets (netlink(7)), so that it learns of no interface that comes or goes.

It breaks off every request at such a moment (net::ERR_NETWORK_CHANGED), also those to the loopback, and other tests make
interfaces all the time.
"""
import ctypes
import errno
import os
import struct
import sys

PR_SET_SECCOMP, SECCOMP_MODE_FILTER, PR_SET_NO_NEW_PRIVS, AF_NETLINK = 22, 2, 38, 16
LOAD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, FAIL = 0x7FFF0000, 0x00050000 | errno.EAFNOSUPPORT
# The audit architecture, and the number of socket(2).
MACHINES = {"x86_64": (0xC000003E, 41), "aarch64": (0xC00000B7, 198)}

if os.uname().machine in MACHINES:
    architecture, socket = MACHINES[os.uname().machine]
    # Offsets in struct seccomp_data: the architecture is at 4, the number at 0, the first argument at 16.
    steps = [
        (LOAD, 0, 0, 4), (JUMP_IF_EQUAL, 0, 5, architecture),
        (LOAD, 0, 0, 0), (JUMP_IF_EQUAL, 0, 3, socket),
        (LOAD, 0, 0, 16), (JUMP_IF_EQUAL, 0, 1, AF_NETLINK),
        (RETURN, 0, 0, FAIL), (RETURN, 0, 0, ALLOW),
    ]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(steps), ctypes.addressof(code)))
    libc = ctypes.CDLL(None, use_errno=True)
    for values in ((PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), (PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program, 0, 0)):
        if libc.prctl(*values) != 0:
            sys.exit(f"prctl: {os.strerror(ctypes.get_errno())}")
program = os.environ["STEADY_CHROMIUM"]
os.execvp(program, [program, *sys.argv[1:]])
