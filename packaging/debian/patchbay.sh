#!/bin/sh
# The Node of the package patchbay-node where it is installed, else that of the system.
node=/usr/lib/patchbay-node/node
if [ ! -x "$node" ]; then node=/usr/bin/node; fi
exec "$node" /usr/lib/patchbay/dist/patchbay.js "$@"
