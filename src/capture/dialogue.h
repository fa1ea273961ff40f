// SPDX-License-Identifier: BSD-2-Clause
// Which packets would the operations of one endpoint on another have been?
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "end.h"
#include "operation_memory.h"

namespace weft::capture {

// Repeats operations over a flow from one end to the other. The packets of each are in the file
// when its function returns; the flow begins with the first one. Nothing of the arguments is
// changed; only the pieces of a message that stays unfinished are kept. One thread at a time.
class Dialogue {
 public:
  // `to`: the answerer's address. The ends and the memory outlive this.
  Dialogue(End& asker, End& answerer, const os::SocketAddress& to, OperationMemory& memory)
      : asker_(asker), answerer_(answerer), to_(to), memory_(memory) {}
  Dialogue(const Dialogue&) = delete;
  Dialogue& operator=(const Dialogue&) = delete;

  // Returns the message as the answerer knows it. An offer may be without pieces.
  link::Arrival send(const link::SendRequest& request);
  // With the bytes that were read or fetched, and how the target has answered.
  void access(const link::AccessRequest& request, std::span<const LocalRange> read,
              const memory::Accessed& verdict);
  void atomic(const link::AtomicRequest& request, std::span<const LocalRange> fetched,
              const memory::Accessed& verdict);
  // The answerer takes `length` bytes of a message that was offered. They lie in `bytes` if the
  // offer was without pieces.
  void accept(const link::Offer& offer, std::uint64_t length, std::span<const LocalRange> bytes);
  // It has received a message.
  void acknowledge(const link::Offer& offer);
  // The asker withdraws the message of that cookie.
  void cancel(void* cookie);
  // The flow ends, if it has begun.
  void end();

 private:
  void repeat(const std::function<link::Outcome(link::Flow&)>& ask);
  bool begin();
  void converse();

  End& asker_;
  End& answerer_;
  const os::SocketAddress to_;
  OperationMemory& memory_;
  std::unique_ptr<link::Flow> flow_;
};

}  // namespace weft::capture
