// SPDX-License-Identifier: BSD-2-Clause
// Does running out of something give a documented error, never a crash, and does all work again
// once there is enough?
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "connected_peer.h"
#include "failure.h"
#include "fork_server.h"
#include "mode.h"
#include "partner.h"
#include "process.h"
#include "resources.h"
#include "shortage.h"
#include "tests.h"

namespace weft::faults {

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kShortLimit{250};  // in a shortage nothing may come at all
constexpr std::chrono::milliseconds kLongLimit{20'000};
constexpr int kAttempts = 50;

// What fi_errno(3) has for a shortage. ENFILE and EFBIG are the system's own, for its table and a
// file's size.
bool means_shortage(int error) {
  constexpr std::array kErrors{FI_ENOMEM, FI_ENOSPC, FI_EMFILE, ENFILE, EFBIG};
  return std::find(kErrors.begin(), kErrors.end(), error) != kErrors.end();
}

// What one end of a connection hears when the other could not make it.
bool means_giving_up(int error) {
  return error == FI_ECONNABORTED || error == FI_ECONNREFUSED || error == FI_ECONNRESET;
}

struct Counts {
  int refused = 0;
  int worked = 0;

  void count(bool success) { ++(success ? worked : refused); }
};

class Exhaustion {
 public:
  Exhaustion(Shortage& shortage, const Mode& mode, const Channel& channel, const Address& partner)
      : shortage_(shortage), mode_(mode), channel_(channel), partner_(partner) {}

  void run() {
    exchange_without_shortage();
    Counts opening;
    Counts using_it;
    for (const std::size_t amount : shortage_.amounts()) {
      amount_ = amount;
      open_in_shortage(opening);
      use_in_shortage(using_it);
    }
    const bool some_refused = opening.refused > 0 || network_serves();
    require(
        some_refused && opening.worked > 0,
        std::string("the shortage never, or always, kept an endpoint from opening: ") + mode_.name);
    std::printf("%s: endpoint opened in %d of %d shortages, used in %d of %d; all recovered\n",
                mode_.name, opening.worked, opening.refused + opening.worked, using_it.worked,
                using_it.refused + using_it.worked);
  }

 private:
  // Does `attempt`, which returns an error, again while it is refused by a partner that has the
  // shortage, too: a port that the partner has opened in it, without a file, lives until it has
  // seen the end of the attempt before.
  template <class Attempt>
  int repeated(const Attempt& attempt) const {
    const bool others = shortage_.shared() && mode_.connects();
    int error = attempt();
    for (int i = 0; i < kAttempts && others && (means_giving_up(error) || means_shortage(error));
         ++i)
      error = attempt();
    return error;
  }

  void exchange_without_shortage() {
    const int error = repeated([&] {
      ConnectedPeer connected_peer(mode_, channel_, partner_);
      require_ok(connected_peer.look_up(), "fi_getinfo without shortage");
      require_ok(connected_peer.open(), "opening without shortage");
      return connected_peer.exchange(kLongLimit);
    });
    require(error == 0, "exchanging without shortage: " + error_text(error));
  }

  // Opens everything with only `amount_` to be had. Returns an error.
  int open_and_exchange(std::chrono::milliseconds limit) {
    ConnectedPeer connected_peer(mode_, channel_, partner_);
    require_ok(connected_peer.look_up(), "fi_getinfo");
    shortage_.apply(amount_);
    const int status = connected_peer.open();
    const int error = status == 0 ? connected_peer.exchange(limit) : -status;
    const char* call = status == 0 ? "the first exchange" : connected_peer.failed_call();
    shortage_.lift();
    judge(error, call);
    require(!network_serves() || status == 0, std::string(call) + " with " +
                                                  std::to_string(amount_) +
                                                  " more to be had: " + error_text(error));
    opened_ = status == 0;
    return error;
  }

  // The same, then again with enough. Without any file the network is all that there is.
  void open_in_shortage(Counts& counts) {
    const Watchdog watchdog("opening with " + std::to_string(amount_) + " more to be had", 60);
    const bool must_work = network_serves() && amount_ == 0;
    const auto limit = must_work ? kLongLimit : kShortLimit;
    const auto attempt = [&] { return open_and_exchange(limit); };
    const int error = must_work ? repeated(attempt) : attempt();
    require(!must_work || error == 0, "the first exchange by the network: " + error_text(error));
    counts.count(opened_);  // the exchange may just have had no time
    exchange_without_shortage();
  }

  // Opens with enough, then meets its first peer and registers memory with only `amount_` to be
  // had.
  void use_in_shortage(Counts& counts) {
    const Watchdog watchdog("working with " + std::to_string(amount_) + " more to be had", 60);
    ConnectedPeer connected_peer(mode_, channel_, partner_);
    require_ok(connected_peer.look_up(), "fi_getinfo");
    require_ok(connected_peer.open(), "opening without shortage");
    shortage_.apply(amount_);
    const int registered = connected_peer.register_some();
    const int error = connected_peer.exchange(kShortLimit);
    shortage_.lift();
    judge(-registered, "fi_mr_reg");
    judge(error, "the exchange");
    counts.count(registered == 0 && error == 0);
    require_ok(connected_peer.register_some(), "fi_mr_reg after the shortage");
    const int later = connected_peer.exchange(kLongLimit);
    require(later == 0, "exchanging after the shortage, with " + std::to_string(amount_) +
                            " in it: " + error_text(later));
  }

  bool network_serves() const {
    const char* const links = std::getenv("FI_WEFT_LINKS");
    return shortage_.of_files() && provider_is_weft() &&
           (links == nullptr || std::strcmp(links, "shm") != 0);
  }

  void judge(int error, const char* call) const {
    // ETIMEDOUT: nothing failed, and nothing came for a while; what follows must show that nothing
    // is broken.
    const bool others = shortage_.shared() && mode_.connects() && means_giving_up(error);
    if (error != 0 && error != ETIMEDOUT && !means_shortage(error) && !others) {
      fail(std::string(call) + " with " + std::to_string(amount_) +
           " more to be had: " + error_text(error) + " is no error of a shortage");
    }
  }

  Shortage& shortage_;
  const Mode& mode_;
  const Channel& channel_;
  const Address partner_;
  std::size_t amount_ = 0;
  bool opened_ = false;  // by the last open_and_exchange()
};

// A stack that must grow in a shortage of address space would be a crash that no library can help.
void take_stack() {
  volatile char stack[512 * 1024];
  for (std::size_t i = 0; i < sizeof stack; i += 4096) stack[i] = 0;
}

// The process that may crash, and its partner that lacks nothing; run by one that watches both.
void run(const std::string& directory, Shortage& shortage, const Mode& mode) {
  Channel here;
  Channel there;
  Channel::make_pair(here, there);
  const Process partner("the partner", [&] {
    here.close();
    return live_as_partner(there, mode);
  });
  there.close();
  Address address{};
  require(here.receive(&address, sizeof address), "the partner did not start");
  const Process connected_peer("the process in shortage", [&] {
    name_this_process("process in shortage");
    take_stack();
    Exhaustion(shortage, mode, here, address).run();
    return kPassed;
  });
  connected_peer.require_passed();
  const Notice over{{}, 0, true};
  here.send(&over, sizeof over);
  partner.require_passed();
  std::string left;
  const std::size_t files = files_below(directory, &left);
  require(files == 0, "files are left in the runtime directory:\n" + left);
}

int run(const std::string& directory, Shortage& shortage) {
  load_library();
  for (const Mode& mode : kModes) run(directory, shortage, mode);
  return kPassed;
}

int run_with(const char* name, std::unique_ptr<Shortage> (*make)()) {
  const std::string directory = make_runtime_directory(name);
  const int status = run(directory, *make());
  std::filesystem::remove_all(directory);
  return status;
}

}  // namespace

int run_descriptor_test() { return run_with("descriptors", descriptor_shortage); }
int run_file_size_test() { return run_with("file-size", file_size_shortage); }

int run_address_space_test() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  std::printf("skipped: a sanitizer needs more address space than any limit\n");
  return kSkipped;
#else
  return run_with("address-space", address_space_shortage);
#endif
}

int run_file_system_test() {
  const std::string directory = make_runtime_directory("file-system");
  std::string reason;
  auto shortage = file_system_shortage(directory, reason);
  int status = kSkipped;
  if (shortage) {
    status = run(directory, *shortage);
    shortage.reset();  // unmounts
  } else {
    std::printf("skipped: %s\n", reason.c_str());
  }
  std::filesystem::remove_all(directory);
  return status;
}

}  // namespace weft::faults
