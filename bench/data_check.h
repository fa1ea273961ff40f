// SPDX-License-Identifier: BSD-2-Clause
// Whether an operation moves the right bytes: one exchange whose data are compared.
#pragma once

#include "context.h"
#include "options.h"

namespace weft::bench {

// The client's side: asks the server at the other end of CHANNEL for a check, and does one exchange
// of data that no earlier SEED had. Fatal if the wrong bytes arrive on either side.
void check_as_client(Context& context, Channel& channel, const Options& options, std::uint8_t seed);

// The server's side of it.
void check_as_server(Context& context, Channel& channel, const Options& options, std::uint8_t seed);

// One thread whose peer is its own endpoint.
void check_alone(Context& context, const Options& options, std::uint8_t seed);

}  // namespace weft::bench
