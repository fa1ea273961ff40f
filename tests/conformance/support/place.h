// SPDX-License-Identifier: BSD-2-Clause
// How does a test make and end connections call by call?
#pragma once

#include <optional>
#include <string>

#include "channel.h"
#include "endpoint.h"

namespace weft::conformance {

// What an event queue said.
struct Event {
  std::uint32_t what = 0;  // FI_CONNREQ, FI_CONNECTED, FI_SHUTDOWN; 0 for an error
  fid* object = nullptr;
  Info info;
  std::string data;
  int err = 0;
};

// A domain for connected endpoints with one event queue and one completion queue for all of them.
class Place {
 public:
  explicit Place(fi_wait_obj wait = FI_WAIT_NONE, fi_threading threading = FI_THREAD_SAFE,
                 std::uint32_t api = Options{}.api);
  explicit Place(const Options& options, fi_wait_obj wait = FI_WAIT_NONE);
  bool ok() const { return cq_ != nullptr; }

  fid_eq* eq() const { return eq_.get(); }
  fid_cq* cq() const { return cq_.get(); }
  // Where the event queue waits with FI_WAIT_SET; else null.
  fid_wait* wait_set() const { return set_.get(); }
  fi_info* info() const { return domain_.info(); }
  const Domain& domain() const { return domain_; }

  // A passive endpoint at `service` of 127.0.0.1 (0: any), bound; and one that listens.
  Fid<fid_pep> open_passive();
  Fid<fid_pep> listen();
  // An endpoint by this info (null: one that may connect), bound, not enabled.
  Fid<fid_ep> open(fi_info* info = nullptr);
  // One on its way to `address`.
  Fid<fid_ep> connect(const Address& address, const std::string& data = {});

  // The event at the front, if there is one.
  std::optional<Event> read();
  // The next event, whatever it takes; what == 0 and err == 0 when none comes.
  Event next();
  // The next event, which has to be of this kind and object.
  Event expect(std::uint32_t what, const fid* object);
  // The next event, which has to be this error of this object.
  Event expect_error(int err, const fid* object);
  // Nothing has been said for a while.
  void expect_silence();

  // The next completion; drives progress. Its err says how it ended.
  Completion completion();
  std::optional<Completion> take_completion();

 private:
  Domain domain_;
  Fid<fid_wait> set_;
  Fid<fid_eq> eq_;
  Fid<fid_cq> cq_;
};

Address name_of(fid* object);
inline bool operator==(const Address& a, const Address& b) {
  return a.size == b.size && a.bytes == b.bytes;
}

// Those of a place, unless a test chooses others.
Options connected(fi_threading threading = FI_THREAD_SAFE, std::uint32_t api = Options{}.api);

// Two endpoints of one place that are connected, and the passive endpoint that it took.
struct Pair {
  explicit Pair(Place& place);

  Fid<fid_pep> pep;
  Fid<fid_ep> active;
  Fid<fid_ep> passive;
  fid* request = nullptr;  // the handle of it
};

}  // namespace weft::conformance
