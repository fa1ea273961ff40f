// SPDX-License-Identifier: BSD-2-Clause
// How does a queue pair execute the requests of its peer?
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "memory/local_access.h"
#include "memory/own_memory.h"
#include "queue/completions.h"
#include "queue/received.h"
#include "work/target.h"

namespace weft::queue {

// The memory and the receives of one queue pair. With the lock of its port held.
class QpTarget final : public work::Target {
 public:
  // All outlive it; `shared` is null but for an extended reliable connection.
  QpTarget(memory::AccessGuard& guard, const ReceiveEnd& end, std::uint32_t qpn, ReceiveSink& sink,
           SharedReceives* shared);

  // The peer has these rights from now on (qp_access_flags).
  void serve(Access access);
  // Unpins memory: after each packet.
  void release() { remote_->release(); }

  work::RequestVerdict may_use(std::uint32_t shared_receive) override;
  work::RequestVerdict message_begins() override;
  work::RequestVerdict message_goes_on(std::span<const std::byte> bytes) override;
  void message_ends(const work::MessageEnd& end) override;
  void message_breaks() override {}
  work::RequestVerdict may_access(Access need, const work::RemoteMemory& memory) override;
  work::RequestVerdict write(const work::RemoteMemory& memory, std::uint64_t offset,
                             std::span<const std::byte> bytes) override;
  work::RequestVerdict may_report_immediate() override;
  void written(const work::RemoteMemory& memory, const work::MessageEnd& end) override;
  work::RequestVerdict read(const work::RemoteMemory& memory, std::uint64_t offset,
                            std::span<std::byte> out) override;
  work::RequestVerdict atomic(bool compares, const work::AtomicOperands& what,
                              std::uint64_t& original) override;

  // A datagram, whose first bytes are `header`. Without a receive it is dropped: false. One that
  // does not fit ends its receive with an error.
  bool datagram(std::span<const std::byte> header, std::span<const std::byte> bytes,
                const work::MessageEnd& end, std::uint32_t source);

  // As message_goes_on(), by `length` bytes that `copy` writes: of those, the ones from an offset
  // on that fill the ranges. `error`: its errno, where the fault is not in the memory of the
  // receive.
  using Copy = std::function<int(std::uint64_t offset, std::span<const LocalRange> here)>;
  work::RequestVerdict message_is_copied(std::uint64_t length, const Copy& copy, int& error);

  // The buffers of the message that goes on, and how many bytes of it have come.
  std::span<const work::Segment> buffers() const { return receive_.segments; }
  std::uint64_t received() const { return received_; }

  // Ends a receive that a message has taken and not finished, if there is one.
  void flush();
  // The peer says that an access was refused, or that its memory has gone.
  void look(Access need, const work::RemoteMemory& memory, bool gone);
  // True once for each access that was refused.
  bool take_refusal() { return std::exchange(is_new_, false); }
  // A sentence about that access, before release().
  std::string explanation() const {
    return guard_.explain(refusal_, refused_need_, refused_range_);
  }
  // The answer of the region table to the last access.
  work::RequestVerdict::Kind last_verdict() const { return last_verdict_; }

 private:
  bool has_queue();
  bool has_room(std::uint64_t length);
  work::RequestVerdict fail_receive(memory::AccessError reason);
  work::RequestVerdict take_receive();
  void end_receive(ReceiveEnding receive);
  work::RequestVerdict verdict_of(const memory::Accessed& accessed, Access need,
                                  const RemoteRange& range);

  memory::AccessGuard& guard_;
  ReceiveEnd end_;
  const std::uint32_t qpn_;
  ReceiveSink& sink_;
  SharedReceives* const shared_;
  std::uint32_t shared_number_ = 0;  // of the queue that the last request has named
  ServedAccess served_;
  std::optional<memory::LocalAccess> local_;
  std::optional<memory::OwnMemory> remote_;
  // The receive of a message that has begun, or that broke off and left it to the next.
  PostedReceive receive_;
  bool has_receive_ = false;
  std::uint64_t received_ = 0;  // bytes
  memory::AccessError refusal_ = memory::AccessError::kNone;
  bool is_new_ = false;  // take_refusal()
  // The access that was refused.
  Access refused_need_ = Access::kNone;
  RemoteRange refused_range_;
  work::RequestVerdict::Kind last_verdict_ = work::RequestVerdict::Kind::kYes;
};

}  // namespace weft::queue
