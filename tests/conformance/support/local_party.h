// SPDX-License-Identifier: BSD-2-Clause
// How does a side that lives in this process do what a test tells it?
#pragma once

#include <map>
#include <memory>

#include "channel.h"
#include "guarded_buffer.h"
#include "party.h"

namespace weft::conformance {

// Owns an endpoint, the buffers of its operations and its regions. Joins `pump` for its life.
class LocalParty : public Party {
 public:
  LocalParty(std::shared_ptr<Domain> domain, const Options& options, Pump* pump);
  ~LocalParty() override;

  bool ok() const { return endpoint_.ok(); }
  Endpoint& endpoint() { return endpoint_; }
  Reply call(const Request& request) override;

  // Direct access for tests that need more than requests.
  void* context_of(Token token) { return &slots_.at(token)->context; }
  GuardedBuffer& buffer_of(Token token) { return slots_.at(token)->buffer; }
  // The context of a receive can be given again: FI_CLAIM has to name the peek's context.
  Posted post_with_context(const Operation& operation, Token same_context_as);

 private:
  struct Slot {
    Slot(const Operation& o) : operation(o), buffer(o.length, o.misalignment) {}
    fi_context2 context{};
    Operation operation;
    GuardedBuffer buffer;
  };
  struct Exposed {
    explicit Exposed(const RegionSpec& spec) : buffer(spec.length, spec.misalignment) {}
    GuardedBuffer buffer;
    Fid<fid_cntr> counter;
    Fid<fid_mr> mr;
  };

  Reply do_post(const Operation& operation, Token context);
  Reply do_accept();
  Reply do_wait(Token token, std::chrono::milliseconds limit);
  Reply do_check(const Request& request);
  Reply do_expose(const RegionSpec& spec);
  Reply do_check_region(const Request& request);
  Reply do_map_key(Region region);
  void fill_context(Slot& slot);
  int bind_counter(Exposed& exposed, std::uint64_t events);
  Reply do_wait_counter(fid_cntr* cntr, std::uint64_t value);
  Reply do_leftovers();
  void let_source_go(Slot* slot);

  Pump* pump_;
  std::map<Token, std::unique_ptr<Slot>> slots_;  // Outlive the endpoint, which writes into them.
  Endpoint endpoint_;
  std::map<Token, std::unique_ptr<Exposed>> regions_;
  Token next_token_ = 1;
};

}  // namespace weft::conformance
