#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# How does mpirun start its daemon on another host, when hosts are namespaces? As ssh would: HOST COMMAND...
#
# WEFT_TEST_HOSTS is a folder with a file for each address, in which the words stand that lead there.
host=$1
shift
# Of ssh's options none is needed; the command is for the shell there, as with ssh.
exec $(cat "$WEFT_TEST_HOSTS/$host") sh -c "$*"
