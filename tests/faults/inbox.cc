// SPDX-License-Identifier: BSD-2-Clause
// What happens to a receive that a message, an error or a cancellation ends?
#include "inbox.h"

#include "failure.h"

namespace weft::faults {

namespace {

constexpr int kPostAttempts = 100000;

}  // namespace

Inbox::Inbox(Node& node, Kind kind, OnMessage on_message, OnError on_error)
    : node_(node), kind_(kind), on_message_(std::move(on_message)), on_error_(std::move(on_error)) {
  memory_ = std::make_unique_for_overwrite<std::uint8_t[]>(kind.count * kind.bytes);
  for (std::size_t i = 0; i < kind.count; ++i) {
    operations_.push_back(std::make_unique<Operation>());
    operations_.back()->target = this;
    operations_.back()->memory = {memory_.get() + i * kind.bytes, kind.bytes};
    post(*operations_.back());
  }
}

// The receive queue is larger than all that these tests post: FI_EAGAIN may only be a short
// refusal.
void Inbox::post(Operation& operation) {
  operation.pending = true;
  for (int attempt = 0; attempt < kPostAttempts; ++attempt) {
    const Bytes memory = operation.memory;
    const long status = kind_.tagged
                            ? fi_trecv(node_.endpoint(), memory.data(), memory.size(), nullptr,
                                       kind_.source, kind_.tag, 0, &operation.context)
                            : fi_recv(node_.endpoint(), memory.data(), memory.size(), nullptr,
                                      kind_.source, &operation.context);
    if (status == 0) {
      ++pending_;
      return;
    }
    if (status != -FI_EAGAIN) fail("posting a receive: " + error_text(status));
  }
  fail("posting a receive: FI_EAGAIN without end");
}

void Inbox::again(Operation& operation) {
  if (kind_.repeat && !cancelled_) post(operation);
}

void Inbox::cancel() {
  cancelled_ = true;
  for (const auto& operation : operations_) {
    // -FI_ENOENT: a message has matched it already, so it will end by itself.
    if (operation->pending) fi_cancel(&node_.endpoint()->fid, &operation->context);
  }
}

void Inbox::completed(Operation& operation, const fi_cq_tagged_entry& entry) {
  --pending_;
  ++received_;
  PayloadHeader header{};
  const ConstBytes message = ConstBytes(operation.memory).first(entry.len);
  if (!read_payload(message, header)) {
    fail("a message of " + std::to_string(entry.len) +
         " bytes came damaged: header says encounter " + std::to_string(header.sender) +
         ", number " + std::to_string(header.sequence) + ", " + std::to_string(header.bytes) +
         " bytes");
  }
  if (kind_.tagged && entry.tag != kind_.tag)
    fail("a message came with tag " + std::to_string(entry.tag));
  on_message_(message, header.sender);
  again(operation);
}

void Inbox::failed(Operation& operation, const fi_cq_err_entry& error) {
  --pending_;
  if (error.err != FI_ECANCELED) on_error_(error.err, "receive");
  again(operation);
}

}  // namespace weft::faults
