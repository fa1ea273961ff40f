// SPDX-License-Identifier: BSD-2-Clause
// Do survivors of a thousand kill -9 lose nothing but the dead, and is nothing left behind?
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <random>

#include "failure.h"
#include "fork_server.h"
#include "node.h"
#include "process.h"
#include "resources.h"
#include "survivor.h"
#include "tests.h"
#include "victim.h"
#include "witness.h"

namespace weft::faults {

namespace {

constexpr std::uint64_t kKills = 1000;
constexpr std::size_t kSlots = 4;

std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::strtoull(text, nullptr, 0) : otherwise;
}

int run(fi_ep_type type, const std::string& name) {
  const std::string directory = make_runtime_directory(name);
  // A victim that dies before it was ever there should not cost each meeting two seconds.
  setenv("FI_WEFT_CONNECT_TIMEOUT_MS", "300", 0);
  KillPlan plan{type, from_environment("WEFT_FAULTS_KILLS", kKills),
                from_environment("WEFT_FAULTS_SEED", std::random_device{}()), directory};
  std::printf("kills %llu, WEFT_FAULTS_SEED=%llu\n", static_cast<unsigned long long>(plan.kills),
              static_cast<unsigned long long>(plan.seed));
  load_library();
  Channel requests, fork_server, witness_here, witness_there;
  Channel::make_pair(requests, fork_server);
  Channel::make_pair(witness_here, witness_there);
  std::vector<Channel> survivor_ends(kSlots);
  std::vector<Channel> victim_ends(kSlots);
  for (std::size_t i = 0; i < kSlots; ++i) Channel::make_pair(survivor_ends[i], victim_ends[i]);
  const Process witness("the witness", [&] {
    // Ends of others, kept open here, would hide that those others are gone.
    for (Channel* end : {&requests, &fork_server, &witness_here}) end->close();
    return live_as_witness(witness_there, type);
  });
  const Process survivor("the survivor", [&] {
    requests.close();
    return live_as_survivor(plan, std::move(fork_server), std::move(survivor_ends),
                            std::move(witness_here));
  });
  fork_server.close();
  serve_fork_server(requests, victim_ends, live_as_victim);
  survivor.require_passed();
  witness_here.send("", 1);
  witness.require_passed();
  std::string left;
  const std::size_t files = files_below(directory, &left);
  require(files == 0, "files are left in the runtime directory:\n" + left);
  std::filesystem::remove_all(directory);
  return kPassed;
}

}  // namespace

int run_kill_test() { return run(FI_EP_RDM, "kill"); }
int run_connected_kill_test() { return run(FI_EP_MSG, "kill-connections"); }

}  // namespace weft::faults
