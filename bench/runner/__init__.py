# SPDX-License-Identifier: BSD-2-Clause
# What bench/run.py is made of.
