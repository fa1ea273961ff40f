// SPDX-License-Identifier: BSD-2-Clause
// What do the tagged message calls do? fi_tagged(3)
#include "transfer.h"

namespace weft::fabric {
namespace {

using messaging::ReceiveCall;
using messaging::SendCall;

constexpr std::uint64_t kReceiveFlags =
    FI_COMPLETION | FI_MORE | FI_PEEK | FI_CLAIM | FI_DISCARD | FI_TRIGGER;

ssize_t recv_pieces(Handle& ep, std::span<const LocalRange> list, fi_addr_t source,
                    std::uint64_t tag, std::uint64_t ignore, void* context, std::uint64_t flags) {
  ReceiveCall call;
  call.tagged = true;
  call.tag = tag;
  call.ignore = ignore;
  call.pieces = list;
  call.report = report(ep.rx_selective(), flags, context);
  return receive(ep, call, source, flags);
}

ssize_t recv(fid_ep* fid, void* buffer, std::size_t length, void*, fi_addr_t source,
             std::uint64_t tag, std::uint64_t ignore, void* context) {
  Handle& ep = Handle::from(fid);
  const std::uint64_t flags = ep.rx_flags;
  const LocalRange one = message_piece(buffer, length);
  return recv_pieces(ep, {&one, 1}, source, tag, ignore, context, flags);
}

ssize_t recvv(fid_ep* fid, const iovec* list, void**, std::size_t count, fi_addr_t source,
              std::uint64_t tag, std::uint64_t ignore, void* context) {
  Handle& ep = Handle::from(fid);
  return recv_pieces(ep, pieces(list, count), source, tag, ignore, context, ep.rx_flags);
}

// FI_DISCARD alone has no meaning: it says what becomes of what is peeked at or was claimed.
bool receive_mode(std::uint64_t flags, ReceiveCall::Mode& mode) {
  switch (flags & (FI_PEEK | FI_CLAIM | FI_DISCARD)) {
    case 0:
      mode = ReceiveCall::Mode::kPost;
      return true;
    case FI_PEEK:
      mode = ReceiveCall::Mode::kPeek;
      return true;
    case FI_PEEK | FI_CLAIM:
      mode = ReceiveCall::Mode::kPeekClaim;
      return true;
    case FI_PEEK | FI_DISCARD:
      mode = ReceiveCall::Mode::kPeekDiscard;
      return true;
    case FI_CLAIM:
      mode = ReceiveCall::Mode::kTakeClaimed;
      return true;
    case FI_CLAIM | FI_DISCARD:
      mode = ReceiveCall::Mode::kDiscardClaimed;
      return true;
    default:
      return false;
  }
}

ssize_t recvmsg(fid_ep* fid, const fi_msg_tagged* msg, std::uint64_t flags) {
  if (msg == nullptr) return -FI_EINVAL;
  return receive_tagged(Handle::from(fid), *msg, flags, nullptr);
}

ssize_t send_pieces(Handle& ep, std::span<const LocalRange> list, fi_addr_t peer, std::uint64_t tag,
                    void* context, std::uint64_t flags) {
  SendCall call;
  call.peer = peer;
  call.operation = link::MessageOperation::kTagged;
  call.tag = tag;
  call.pieces = list;
  call.report = report(ep.tx_selective(), flags, context);
  return send(ep, call, flags);
}

ssize_t send_one(fid_ep* fid, const void* buffer, std::size_t length, void*, fi_addr_t peer,
                 std::uint64_t tag, void* context) {
  Handle& ep = Handle::from(fid);
  const std::uint64_t flags = ep.tx_flags;
  const LocalRange one = message_piece(buffer, length);
  return send_pieces(ep, {&one, 1}, peer, tag, context, flags);
}

ssize_t sendv(fid_ep* fid, const iovec* list, void**, std::size_t count, fi_addr_t peer,
              std::uint64_t tag, void* context) {
  Handle& ep = Handle::from(fid);
  return send_pieces(ep, pieces(list, count), peer, tag, context, ep.tx_flags);
}

ssize_t sendmsg(fid_ep* fid, const fi_msg_tagged* msg, std::uint64_t flags) {
  if (msg == nullptr) return -FI_EINVAL;
  return send_tagged(Handle::from(fid), *msg, flags, nullptr);
}

ssize_t senddata(fid_ep* fid, const void* buffer, std::size_t length, void*, std::uint64_t data,
                 fi_addr_t peer, std::uint64_t tag, void* context) {
  Handle& ep = Handle::from(fid);
  const std::uint64_t flags = ep.tx_flags;
  const LocalRange one = message_piece(buffer, length);
  SendCall call;
  call.peer = peer;
  call.operation = link::MessageOperation::kTagged;
  call.has_data = true;
  call.tag = tag;
  call.data = data;
  call.pieces = {&one, 1};
  call.report = report(ep.tx_selective(), flags, context);
  return send(ep, call, flags);
}

ssize_t inject_with(fid_ep* fid, const void* buffer, std::size_t length, bool has_data,
                    std::uint64_t data, fi_addr_t peer, std::uint64_t tag) {
  const LocalRange one = message_piece(buffer, length);
  SendCall call;
  call.peer = peer;
  call.operation = link::MessageOperation::kTagged;
  call.has_data = has_data;
  call.tag = tag;
  call.data = data;
  call.pieces = {&one, 1};
  call.report = messaging::Report::silence();
  return send(Handle::from(fid), call, 0);
}

ssize_t injectdata(fid_ep* fid, const void* buffer, std::size_t length, std::uint64_t data,
                   fi_addr_t peer, std::uint64_t tag) {
  return inject_with(fid, buffer, length, true, data, peer, tag);
}

ssize_t inject(fid_ep* fid, const void* buffer, std::size_t length, fi_addr_t peer,
               std::uint64_t tag) {
  return inject_with(fid, buffer, length, false, 0, peer, tag);
}

}  // namespace

ssize_t receive_tagged(Handle& ep, const fi_msg_tagged& msg, std::uint64_t flags,
                       const fi_deferred_work* work) {
  ReceiveCall call;
  if ((flags & ~kReceiveFlags) != 0) return -FI_EBADFLAGS;
  if (!receive_mode(flags, call.mode)) return -FI_EINVAL;
  call.tagged = true;
  call.tag = msg.tag;
  call.ignore = msg.ignore;
  call.pieces = pieces(msg.msg_iov, msg.iov_count);
  call.report = report(ep.rx_selective(), flags, msg.context);
  return receive(ep, call, msg.addr, flags, work);
}

ssize_t send_tagged(Handle& ep, const fi_msg_tagged& msg, std::uint64_t flags,
                    const fi_deferred_work* work) {
  if ((flags & ~kCallFlags) != 0) return -FI_EBADFLAGS;
  SendCall call;
  call.peer = msg.addr;
  call.operation = link::MessageOperation::kTagged;
  call.has_data = (flags & FI_REMOTE_CQ_DATA) != 0;
  call.tag = msg.tag;
  call.data = msg.data;
  call.pieces = pieces(msg.msg_iov, msg.iov_count);
  call.report = report(ep.tx_selective(), flags, msg.context);
  return send(ep, call, flags, work);
}

fi_ops_tagged* tagged_operations(Direction direction) {
  static ByDirection<fi_ops_tagged> tables({sizeof(fi_ops_tagged), recv, recvv, recvmsg, send_one,
                                            sendv, sendmsg, inject, senddata, injectdata});
  return tables.of(direction);
}

}  // namespace weft::fabric
