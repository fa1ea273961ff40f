# SPDX-License-Identifier: BSD-2-Clause
# Joins files of tests into one, on standard output; what is in a file's unnamed namespace keeps to itself.
FNR == 1 { printf "#line 1 \"%s\"\n", FILENAME; ++file }
/^namespace \{$/ { $0 = "namespace { namespace file_" file " {" }
/^}  \/\/ namespace$/ { $0 = "}}" }
{ print }
