// SPDX-License-Identifier: BSD-2-Clause
// Queries that programs reach through the context.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>

namespace weft::verbs {

int query_port(ibv_context* context, std::uint8_t port, ibv_port_attr* found, std::size_t size);
int query_device_ex(ibv_context* context, const ibv_query_device_ex_input* input,
                    ibv_device_attr_ex* found, std::size_t size);

}  // namespace weft::verbs
