/* SPDX-License-Identifier: BSD-2-Clause */
/* Where do programs of Mellanox OFED find the experimental verbs? In <infiniband/verbs.h>. */
#ifndef WEFT_OFED_INFINIBAND_VERBS_H
#define WEFT_OFED_INFINIBAND_VERBS_H

#pragma GCC system_header /* #include_next is an extension of the compiler */

#include_next <infiniband/verbs.h>

#include <infiniband/verbs_exp.h>

#endif
