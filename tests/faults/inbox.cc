// SPDX-License-Identifier: BSD-2-Clause
// What happens to a receive that a message, an error or a cancellation ends?
#include "inbox.h"

#include "failure.h"

namespace weft::faults {

namespace {

constexpr std::size_t kLargestMessage = 512 * 1024;
constexpr int kPostAttempts = 100000;

// Where the message lies that ended a receive, or a part of it.
ConstBytes message_of(const Operation& operation, const fi_cq_tagged_entry& entry) {
  const ConstBytes memory = operation.memory;
  if (!operation.many || entry.len == 0) return memory.first(entry.len);
  const auto* begin = static_cast<const std::uint8_t*>(entry.buf);
  const bool inside = begin >= memory.data() && begin + entry.len <= memory.data() + memory.size();
  require(inside, "a message is said to lie outside of the receive that it was for");
  return {begin, entry.len};
}

}  // namespace

Inbox::Inbox(fid_ep* endpoint, Kind kind, OnMessage on_message, OnError on_error)
    : endpoint_(endpoint),
      kind_(kind),
      on_message_(std::move(on_message)),
      on_error_(std::move(on_error)) {
  if (kind.many != 0) {
    require_ok(fi_setopt(&endpoint_->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &kind.many,
                         sizeof kind.many),
               "fi_setopt of FI_OPT_MIN_MULTI_RECV");
  }
  memory_ = std::make_unique_for_overwrite<std::uint8_t[]>(kind.count * kind.bytes);
  for (std::size_t i = 0; i < kind.count; ++i) {
    operations_.push_back(std::make_unique<Operation>());
    operations_.back()->target = this;
    operations_.back()->memory = {memory_.get() + i * kind.bytes, kind.bytes};
    operations_.back()->many = kind.many != 0;
    post(*operations_.back());
  }
}

long Inbox::try_post(Operation& operation) {
  const Bytes memory = operation.memory;
  void* context = &operation.context;
  if (kind_.tagged) {
    return fi_trecv(endpoint_, memory.data(), memory.size(), nullptr, kind_.source, kind_.tag, 0,
                    context);
  }
  if (kind_.many == 0) {
    return fi_recv(endpoint_, memory.data(), memory.size(), nullptr, kind_.source, context);
  }
  const iovec piece{memory.data(), memory.size()};
  fi_msg message = {};
  message.msg_iov = &piece;
  message.iov_count = 1;
  message.addr = kind_.source;
  message.context = context;
  return fi_recvmsg(endpoint_, &message, FI_COMPLETION | FI_MULTI_RECV);
}

// The receive queue is larger than all that these tests post: FI_EAGAIN may only be a short
// refusal.
void Inbox::post(Operation& operation) {
  operation.pending = true;
  for (int attempt = 0; attempt < kPostAttempts; ++attempt) {
    const long status = try_post(operation);
    if (status == 0) {
      ++pending_;
      return;
    }
    if (status == -FI_ESHUTDOWN) {
      operation.pending = false;
      return on_error_(FI_ESHUTDOWN, "posting a receive");
    }
    if (status != -FI_EAGAIN) fail("posting a receive: " + error_text(status));
  }
  fail("posting a receive: FI_EAGAIN without end");
}

void Inbox::again(Operation& operation) {
  --pending_;
  if (kind_.repeat && !cancelled_) post(operation);
}

void Inbox::cancel() {
  cancelled_ = true;
  for (const auto& operation : operations_) {
    // -FI_ENOENT: a message has matched it already, so it will end by itself.
    if (operation->pending) fi_cancel(&endpoint_->fid, &operation->context);
  }
}

void Inbox::completed(Operation& operation, const fi_cq_tagged_entry& entry) {
  ++received_;
  PayloadHeader header{};
  const ConstBytes message = message_of(operation, entry);
  if (!read_payload(message, header)) {
    fail("a message of " + std::to_string(entry.len) + " bytes came damaged: header says session " +
         std::to_string(header.sender) + ", number " + std::to_string(header.sequence) + ", " +
         std::to_string(header.bytes) + " bytes");
  }
  if (kind_.tagged && entry.tag != kind_.tag)
    fail("a message came with tag " + std::to_string(entry.tag));
  on_message_(message, header.sender);
  if (!operation.pending) again(operation);
}

void Inbox::failed(Operation& operation, const fi_cq_err_entry& error) {
  if (error.err != FI_ECANCELED) on_error_(error.err, "receive");
  if (!operation.pending) again(operation);
}

Inbox::Kind plain_receives(std::size_t count) {
  return {false, 0, FI_ADDR_UNSPEC, count, kLargestMessage, true};
}

// The last message that a receive takes still fits.
Inbox::Kind packed_receives() {
  return {false, 0, FI_ADDR_UNSPEC, 2, 3 * kLargestMessage, true, kLargestMessage};
}

}  // namespace weft::faults
