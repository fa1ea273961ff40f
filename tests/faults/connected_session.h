// SPDX-License-Identifier: BSD-2-Clause
// How does the survivor meet a victim by a connection (FI_EP_MSG), and hear of its end?
#pragma once

#include <memory>
#include <string>

#include "session.h"
#include "switchboard.h"

namespace weft::faults {

class ConnectedSession final : public Session {
 public:
  // `impatient`: closes its endpoint as soon as the victim is dead, whatever is pending.
  ConnectedSession(const Setting& setting, Switchboard& switchboard, bool impatient);
  ~ConnectedSession() override;

  bool on_event(ConnectionEvent& event) override;

 private:
  void meet() override;
  bool died_early() override { return order_.early; }
  bool means_gone(int error) const override;
  bool may_fail_early(int) const override { return false; }
  void lost() override;
  bool part() override;
  bool death_is_heard() const override { return pending() > 0; }
  std::size_t more_pending() const override;
  std::string describe_more() const override;

  void open(fi_info* request);
  void connected();
  void ended(const ConnectionEvent& event);
  void close_with_all_pending();

  Switchboard& switchboard_;
  const bool impatient_;
  Owned<fid_ep> endpoint_;
  bool connected_ = false;
  bool ended_ = false;
  std::unique_ptr<Inbox> untagged_;
  std::unique_ptr<Inbox> packed_;
};

}  // namespace weft::faults
