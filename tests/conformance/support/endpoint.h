// SPDX-License-Identifier: BSD-2-Clause
// What does one endpoint with its queues, counters and address vector look like to a test?
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "channel.h"
#include "domain.h"

namespace weft::conformance {

// An endpoint's address as fi_getname gives it.
struct Address {
  std::array<std::uint8_t, 64> bytes{};
  std::size_t size = 0;
};

// One entry of a completion queue, successful (err == 0) or not. Fields beyond the queue's format
// keep their initial values.
struct Completion {
  void* context = nullptr;
  std::uint64_t flags = 0;
  std::uint64_t length = 0;
  std::uint64_t data = 0;
  std::uint64_t tag = 0;
  std::uint64_t overflow = 0;
  fi_addr_t source = FI_ADDR_NOTAVAIL;
  int err = 0;
  int prov_errno = 0;
};

// A successful entry, and one in error.
Completion completion_of(const fi_cq_tagged_entry& entry);
Completion completion_of(const fi_cq_err_entry& entry);

// Owns the address vector, or for FI_EP_MSG an event queue and a passive endpoint; one completion
// queue for both directions, if any, the chosen counters and the endpoint. Failures to open are
// test failures; ok() then is false. One thread at a time, but the libfabric objects may be used
// directly by several.
class Endpoint {
 public:
  // With `av`, or with `cq`, which outlive it, it does without an address vector or a queue of its
  // own.
  Endpoint(std::shared_ptr<Domain> domain, const Options& options, fid_av* av = nullptr,
           fid_cq* cq = nullptr);
  bool ok() const { return ep_ != nullptr || pep_ != nullptr; }

  fid_ep* ep() const { return ep_.get(); }
  fid_cq* cq() const { return given_cq_ != nullptr ? given_cq_ : cq_.get(); }
  fid_eq* eq() const { return eq_.get(); }           // of FI_EP_MSG, or with FI_MULTICAST
  fid_wait* wait_set() const { return set_.get(); }  // of queue and counters, with FI_WAIT_SET
  fid_av* av() const { return given_av_ != nullptr ? given_av_ : av_.get(); }
  fid_cntr* counter(std::uint64_t event) const { return counters_.at(event).get(); }
  const std::shared_ptr<Domain>& domain() const { return domain_; }
  fi_info* info() const { return domain_->info(); }
  const Options& options() const { return options_; }

  // Of the passive endpoint, if there is one.
  Address name() const;
  // Of an FI_EP_MSG: begins to connect to the other's name; accepts a request if one has come, else
  // false. Either ends when connected() holds.
  void connect(const Address& address);
  bool accept();
  bool connected() const { return connected_; }
  // FI_ADDR_NOTAVAIL after a failure, which is also a test failure.
  fi_addr_t insert(const Address& address);

  // Closes the endpoint before its time; what it has reported stays.
  void close() { ep_.reset(); }

  // Moves whatever the queues have into this object's memory, and drives progress.
  void poll();
  // The same by one call for the completion queue only; and for an entry that a test has read.
  void read_completions();
  void keep(const fi_cq_tagged_entry& entry) { arrived_.push_back(completion_of(entry)); }
  // The oldest completion with this context that was not taken yet.
  std::optional<Completion> take(const void* context);
  // The oldest completion in error that was not taken yet, whatever its context.
  std::optional<Completion> take_error();
  std::size_t untaken() const { return arrived_.size(); }

  // The keys of regions that a test chooses are unique within the process.
  static std::uint64_t next_key();

 private:
  bool open_queues();
  bool open_completion_queue();
  bool open_passive();
  bool open_active(fi_info* info);
  bool bind_and_enable();
  void read_events();
  void tell_of_failed_connection();
  ssize_t read_queue(void* entries, std::size_t count, fi_addr_t* sources);
  void keep_error();

  Options options_;
  std::shared_ptr<Domain> domain_;
  fid_av* given_av_ = nullptr;
  fid_cq* given_cq_ = nullptr;
  Fid<fid_av> av_;
  Fid<fid_eq> eq_;
  Fid<fid_wait> set_;
  Fid<fid_cq> cq_;
  std::map<std::uint64_t, Fid<fid_cntr>> counters_;
  Fid<fid_pep> pep_;
  Info request_;
  bool connected_ = false;
  Fid<fid_ep> ep_;
  std::deque<Completion> arrived_;
};

// The endpoints of this process that progress together while a test waits, and counters that are
// read as often.
class Pump {
 public:
  void add(Endpoint* endpoint) { endpoints_.push_back(endpoint); }
  void remove(Endpoint* endpoint) { std::erase(endpoints_, endpoint); }
  void add(fid_cntr* counter) { counters_.push_back(counter); }
  // From now on a test's own call drives progress, and no poll of these does.
  void replace(std::function<void()> call) { instead_ = std::move(call); }
  void remove(fid_cntr* counter) { std::erase(counters_, counter); }
  void once() const;
  // Drives progress until `done`; false when patience ran out.
  bool until(const std::function<bool()>& done, std::chrono::milliseconds limit = patience()) const;
  // What is on its way arrives, unless it is lost.
  void settle() const;

 private:
  std::vector<Endpoint*> endpoints_;
  std::vector<fid_cntr*> counters_;
  std::function<void()> instead_;
};

}  // namespace weft::conformance
