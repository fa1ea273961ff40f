// SPDX-License-Identifier: BSD-2-Clause
// What does one side of a many-sided exchange own, and how does it wait?
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "endpoint.h"
#include "point.h"

namespace weft::conformance {

// One completion queue, a counter for each event of its own operations, and the endpoints that
// report there: one, or of FI_EP_MSG one for each partner. Partners are known by numbers from 0.
// One thread at a time.
class Station {
 public:
  using OnCompletion = std::function<void(const Completion&)>;

  Station(std::shared_ptr<Domain> domain, const Point& point, std::size_t partners);
  bool ok() const { return ok_; }
  const Domain& domain() const { return *domain_; }

  // Of the endpoint, or of the one that listens.
  Address name() const;
  // Partners become known by their address; or one side connects to the other, which takes part by
  // progress().
  void insert(std::size_t partner, const Address& address);
  void connect(std::size_t own_number, const Address& address);
  bool met() const;
  fid_ep* endpoint(std::size_t partner) const { return lines_[partner].endpoint; }
  fi_addr_t address(std::size_t partner) const { return lines_[partner].address; }

  // Each completion is handed over, from within the functions below.
  void on_completion(OnCompletion handler) { handler_ = std::move(handler); }
  std::size_t completions() const { return completions_; }
  // Polls.
  void progress();
  // Wait as the point says until there were so many completions, or the counter says so much. False
  // when patience ran out first.
  bool wait_completions(std::size_t count);
  bool wait_counter(std::uint64_t event, std::uint64_t value);
  std::uint64_t counter(std::uint64_t event) { return fi_cntr_read(counters_.at(event).get()); }

 private:
  struct Line {
    fid_ep* endpoint = nullptr;
    fi_addr_t address = FI_ADDR_UNSPEC;
    bool connected = false;
    Fid<fid_ep> own;
  };

  bool open_reports();
  bool open_listener();
  Fid<fid_ep> open_endpoint(fi_info* info);
  void read_events();
  void heed(std::uint32_t what, const fi_eq_cm_entry& entry, std::uint64_t number);
  bool read_queue();
  bool take(ssize_t got, const fi_cq_tagged_entry* entries);
  bool block_on_queue();
  bool block_on_counter(fid_cntr* counter, std::uint64_t value);

  std::shared_ptr<Domain> domain_;
  const Point point_;
  bool ok_ = false;
  Fid<fid_av> addresses_;
  Fid<fid_eq> events_;
  Fid<fid_wait> set_;
  Fid<fid_cq> queue_;
  std::map<std::uint64_t, Fid<fid_cntr>> counters_;
  Fid<fid_pep> listener_;
  Fid<fid_ep> endpoint_;
  std::vector<Line> lines_;
  OnCompletion handler_;
  std::size_t completions_ = 0;
};

}  // namespace weft::conformance
