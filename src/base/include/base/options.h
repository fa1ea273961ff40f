// SPDX-License-Identifier: BSD-2-Clause
// What may a user set, and what are the defaults?
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/registration_contract.h"
#include "base/result.h"

namespace weft {

// Which links may be used.
struct Links {
  bool shm = true;  // within the host
  bool udp = true;  // over the network

  bool operator==(const Links&) const = default;
};

// Takes one line of text for the user, without a line break.
using WarningSink = std::function<void(const std::string&)>;

// Settings of the device. A front end builds one object when it is loaded, from the environment,
// and passes it down by reference; it outlives all objects of that front end.
struct Options {
  // Time an operation waits for a peer that has not appeared yet.
  std::chrono::milliseconds connect_timeout{2000};
  // Silence of a network peer after which it counts as dead, also when the connection is idle; and
  // the time that an accepted requester of this host has for its RTU.
  std::chrono::milliseconds peer_timeout{60'000};
  // Time a connection request waits for the first answer of its listener.
  std::chrono::milliseconds request_timeout{30'000};
  // Messages up to this many bytes are copied through shared memory; larger ones directly.
  std::size_t eager_limit = 8192;
  // Bytes of unexpected messages, bookkeeping included (Matcher::cost_of), that an endpoint keeps
  // before it holds its peers back.
  std::size_t unexpected_limit = std::size_t{1} << 30;
  Links links;
  // What registered memory requires of programs (fi_mr(3)).
  RegistrationContract contract;
  // Whether datagram endpoints receive from foreign peers (rdma_rxe, RNICs).
  bool foreign_peers = true;
  // Whether queue pairs of verbs repeat lost packets alone towards Weft's hosts; else all behind
  // them, too, as towards foreign peers. Both ends need the same value.
  bool selective = true;
  // Whether libfabric's utility providers are kept from layering over Weft.
  bool disable_layering = true;
  // Base of the runtime directory; empty: the default of os::runtime_directory().
  std::string runtime_dir;
  // Names of the network interfaces to offer, separated by commas; empty: all.
  std::string interface;

  // The defaults.
  static const Options& defaults();
  // The defaults, changed by environment variables: for each option the first of PREFIX_NAME that
  // is set, NAME in upper case ("FI_WEFT_" and "WEFT_": FI_WEFT_IFACE, then WEFT_IFACE). Truth
  // values have libfabric's spellings (fi_param_get(3)): 0, false, no, off; 1, true, yes, on, in
  // any case. Each value that makes no sense: a line for `warn`, and the default. A program with
  // more rights than its caller gets the defaults (secure_getenv(3)).
  static Options from_environment(std::span<const std::string_view> prefixes,
                                  const WarningSink& warn);
};

// One environment variable: how it is named, explained and read.
struct OptionVariable {
  const char* name;  // lower case, without the prefix of the front end
  bool is_bool;      // its text is "yes" or "no"
  std::string help;  // one sentence, with the range and the default
  // Stores the value of that text. Error: EINVAL with the range; the option is unchanged.
  std::function<Status(Options&, std::string_view)> parse;
};

// A truth value in one of the spellings that Options::from_environment() takes; else none.
std::optional<bool> parse_truth(std::string_view text);

// All of them: the only place that knows names, ranges and texts.
std::span<const OptionVariable> option_variables();

}  // namespace weft
