// SPDX-License-Identifier: BSD-2-Clause
// How does one side keep receives posted, and check each message that fills one?
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "action.h"
#include "node.h"

namespace weft::faults {

// A number of receives, each posted again when it has ended, until the connection has (for receives
// of one). Messages that are not whole end the test.
class Inbox final : public CompletionTarget {
 public:
  using OnMessage = std::function<void(ConstBytes message, std::uint64_t sender)>;
  using OnError = std::function<void(int error, const std::string& what)>;
  struct Kind {
    bool tagged = false;
    std::uint64_t tag = 0;
    fi_addr_t source = FI_ADDR_UNSPEC;  // a peer: only its messages
    std::size_t count = 1;
    std::size_t bytes = 0;
    bool repeat = true;
    std::size_t many = 0;  // not 0: each takes messages until fewer bytes than that are left
  };

  // Posts all receives. `on_error` hears the error of each one that failed, cancelled ones
  // excepted.
  Inbox(fid_ep* endpoint, Kind kind, OnMessage on_message, OnError on_error);

  // Cancels what no message has matched; no receive is posted again. pending() falls to 0 once all
  // have ended.
  void cancel();
  // No receive is posted again; what is pending stays so.
  void stop() { cancelled_ = true; }

  std::size_t pending() const { return pending_; }
  std::uint64_t received() const { return received_; }

  void completed(Operation& operation, const fi_cq_tagged_entry& entry) override;
  void failed(Operation& operation, const fi_cq_err_entry& error) override;

 private:
  void post(Operation& operation);
  long try_post(Operation& operation);
  void again(Operation& operation);

  fid_ep* endpoint_;
  Kind kind_;
  OnMessage on_message_;
  OnError on_error_;
  std::unique_ptr<std::uint8_t[]> memory_;
  std::vector<std::unique_ptr<Operation>> operations_;
  std::size_t pending_ = 0;
  std::uint64_t received_ = 0;
  bool cancelled_ = false;
};

// Where untagged messages of every action go: to receives for one each, and to receives that many
// are packed into.
Inbox::Kind plain_receives(std::size_t count);
Inbox::Kind packed_receives();

}  // namespace weft::faults
