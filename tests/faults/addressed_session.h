// SPDX-License-Identifier: BSD-2-Clause
// How does the survivor meet a victim by its address alone (FI_EP_RDM)?
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "session.h"

namespace weft::faults {

class AddressedSession final : public Session {
 public:
  // `fresh_address`: takes the slot's address out of the address vector and puts it in again,
  // rather than keep using what stood for the predecessor.
  AddressedSession(const Setting& setting, bool fresh_address);
  ~AddressedSession() override;

 private:
  void meet() override;
  bool died_early() override { return false; }
  bool means_gone(int error) const override;
  bool may_fail_early(int) const override { return true; }
  void lost() override { tagged_->cancel(); }
  bool part() override;
  bool death_is_heard() const override { return initiator_->pending() > 0; }
  std::size_t more_pending() const override;
  std::string describe_more() const override;

  void start();
  void resolve_address();
  void begin_streaming();
  void greet();
  void try_greet();
  bool empty_flood();
  void look_for_more();
  bool try_late_post();

  // The greeting, and the search for unexpected messages that were not received.
  struct Single final : CompletionTarget {
    explicit Single(Tally* tally) : errors(tally) { operation.target = this; }
    void completed(Operation&, const fi_cq_tagged_entry&) override {}
    void failed(Operation&, const fi_cq_err_entry& error) override;
    Tally* errors;
    Operation operation;
    int error = 0;
  };

  const bool fresh_address_;
  Clock::time_point greeted_{};
  std::vector<std::uint8_t> greeting_;
  Single hello_;
  bool greeting_begun_ = false;
  bool wants_hello_ = false;
  unsigned greetings_ = 0;  // taken by the library
  bool answered_ = false;
  std::unique_ptr<Inbox> reply_;
  Single peek_;
  bool peeking_ = false;
  std::unique_ptr<Inbox> leftover_;
  bool flood_empty_ = false;
  bool late_posted_ = false;
};

}  // namespace weft::faults
