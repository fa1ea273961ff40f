// SPDX-License-Identifier: BSD-2-Clause
// What do the message calls do? fi_msg(3), fi_tagged(3)
#include <optional>

#include "transfer.h"

namespace weft::fabric {
namespace {

using messaging::ReceiveCall;
using messaging::SendCall;
using Pieces = std::span<const LocalRange>;

// Which messages a receive takes: tagged ones, if it has a tag.
struct Selection {
  Selection(fi_addr_t from) : peer(from) {}
  Selection(fi_addr_t from, std::uint64_t its_tag, std::uint64_t its_ignore)
      : peer(from), tagged(true), tag(its_tag), ignore(its_ignore) {}

  fi_addr_t peer;
  bool tagged = false;
  std::uint64_t tag = 0;
  std::uint64_t ignore = 0;
};

ReceiveCall receive_call(const Handle& ep, Pieces list, const Selection& from, std::uint64_t flags,
                         void* context) {
  ReceiveCall call;
  call.tagged = from.tagged;
  call.tag = from.tag;
  call.ignore = from.ignore;
  call.pieces = list;
  call.report = report(ep.rx_selective(), flags, context);
  return call;
}

// fi_msg(3): FI_MULTI_RECV makes a receive of untagged messages take several of them, in a buffer
// of one piece.
ssize_t post_receive(Handle& ep, Pieces list, const Selection& from, void* context,
                     std::uint64_t flags, const fi_deferred_work* work = nullptr) {
  ReceiveCall call = receive_call(ep, list, from, flags, context);
  if (!call.tagged && (flags & FI_MULTI_RECV) != 0) [[unlikely]] {
    if (!ep.multi_receive()) return -FI_EBADFLAGS;
    if (list.size() != 1) return -FI_EINVAL;
    call.multi = true;
    call.least = ep.min_multi_receive();
  }
  return receive(ep, call, from.peer, flags, work);
}

// The calls that receive: `Tag` is the type of the tag and of the bits to ignore, or nothing.
template <class Message, class... Tag>
struct ReceiveCalls {
  static ssize_t recv(fid_ep* fid, void* buffer, std::size_t length, void*, fi_addr_t source,
                      Tag... tag, void* context) {
    Handle& ep = Handle::from(fid);
    const std::uint64_t flags = ep.rx_flags;
    const LocalRange one = message_piece(buffer, length);
    return post_receive(ep, {&one, 1}, {source, tag...}, context, flags);
  }
  static ssize_t recvv(fid_ep* fid, const iovec* list, void**, std::size_t count, fi_addr_t source,
                       Tag... tag, void* context) {
    Handle& ep = Handle::from(fid);
    return post_receive(ep, pieces(list, count), {source, tag...}, context, ep.rx_flags);
  }
  static ssize_t recvmsg(fid_ep* fid, const Message* msg, std::uint64_t flags) {
    if (msg == nullptr) return -FI_EINVAL;
    return receive_message(Handle::from(fid), *msg, flags, nullptr);
  }
};

// FI_DISCARD alone has no meaning: it says what becomes of what is peeked at or was claimed.
std::optional<ReceiveCall::Mode> receive_mode(std::uint64_t flags) {
  using enum ReceiveCall::Mode;
  switch (flags & (FI_PEEK | FI_CLAIM | FI_DISCARD)) {
    case 0:
      return kPost;
    case FI_PEEK:
      return kPeek;
    case FI_PEEK | FI_CLAIM:
      return kPeekClaim;
    case FI_PEEK | FI_DISCARD:
      return kPeekDiscard;
    case FI_CLAIM:
      return kTakeClaimed;
    case FI_CLAIM | FI_DISCARD:
      return kDiscardClaimed;
    default:
      return std::nullopt;
  }
}

// How the endpoints of one type send; the calls below exist once for each.
struct Reliable {
  static constexpr std::uint64_t kFlags = kCallFlags;
  static std::uint64_t inject_flags(const Handle&) { return 0; }
  static ssize_t send(Handle& ep, SendCall& call, std::uint64_t flags,
                      const fi_deferred_work* work = nullptr) noexcept {
    return fabric::send(ep, call, flags, work);
  }
};
struct Unreliable {
  static constexpr std::uint64_t kFlags = kDatagramTxFlags | FI_TRIGGER;
  static std::uint64_t inject_flags(const Handle& ep) { return ep.tx_flags & FI_MULTICAST; }
  static ssize_t send(Handle& ep, SendCall& call, std::uint64_t flags,
                      const fi_deferred_work* work = nullptr) noexcept {
    return send_datagram(ep, call, flags, work);
  }
};

// Where a message goes, and its tag, if it has one.
struct Destination {
  Destination(fi_addr_t to) : peer(to) {}
  Destination(fi_addr_t to, std::uint64_t its_tag)
      : peer(to), operation(link::MessageOperation::kTagged), tag(its_tag) {}

  fi_addr_t peer;
  link::MessageOperation operation = link::MessageOperation::kMessage;
  std::uint64_t tag = 0;
};

Destination destination_of(const fi_msg& msg) { return {msg.addr}; }
Destination destination_of(const fi_msg_tagged& msg) { return {msg.addr, msg.tag}; }

SendCall send_call(Pieces list, const Destination& to, RemoteData data, messaging::Report report) {
  SendCall call;
  call.peer = to.peer;
  call.operation = to.operation;
  call.has_data = data.given;
  call.tag = to.tag;
  call.data = data.value;
  call.pieces = list;
  call.report = report;
  return call;
}

// Inlined: otherwise each send would pass its arguments through memory once more.
template <class How>
[[gnu::always_inline]] inline ssize_t post(Handle& ep, Pieces list, const Destination& to,
                                           RemoteData data, void* context, std::uint64_t flags,
                                           const fi_deferred_work* work = nullptr) {
  SendCall call = send_call(list, to, data, report(ep.tx_selective(), flags, context));
  return How::send(ep, call, flags, work);
}

template <class How>
[[gnu::always_inline]] inline ssize_t post(fid_ep* fid, const void* buffer, std::size_t length,
                                           const Destination& to, RemoteData data, void* context) {
  Handle& ep = Handle::from(fid);
  const std::uint64_t flags = ep.tx_flags;
  const LocalRange one = message_piece(buffer, length);
  return post<How>(ep, {&one, 1}, to, data, context, flags);
}

template <class How, class Message>
ssize_t post(Handle& ep, const Message& msg, std::uint64_t flags, const fi_deferred_work* work) {
  if ((flags & ~How::kFlags) != 0) return -FI_EBADFLAGS;
  const RemoteData data{(flags & FI_REMOTE_CQ_DATA) != 0, msg.data};
  return post<How>(ep, pieces(msg.msg_iov, msg.iov_count), destination_of(msg), data, msg.context,
                   flags, work);
}

template <class How>
[[gnu::always_inline]] inline ssize_t post_silently(fid_ep* fid, const void* buffer,
                                                    std::size_t length, const Destination& to,
                                                    RemoteData data) {
  Handle& ep = Handle::from(fid);
  const std::uint64_t flags = How::inject_flags(ep);
  const LocalRange one = message_piece(buffer, length);
  SendCall call = send_call({&one, 1}, to, data, messaging::Report::silence());
  return How::send(ep, call, flags);
}

// The calls that send: `Tag` is the type of the tag, or nothing.
template <class How, class Message, class... Tag>
struct SendCalls {
  static ssize_t send(fid_ep* fid, const void* buffer, std::size_t length, void*, fi_addr_t peer,
                      Tag... tag, void* context) {
    return post<How>(fid, buffer, length, {peer, tag...}, {}, context);
  }
  static ssize_t sendv(fid_ep* fid, const iovec* list, void**, std::size_t count, fi_addr_t peer,
                       Tag... tag, void* context) {
    Handle& ep = Handle::from(fid);
    return post<How>(ep, pieces(list, count), {peer, tag...}, {}, context, ep.tx_flags);
  }
  static ssize_t sendmsg(fid_ep* fid, const Message* msg, std::uint64_t flags) {
    if (msg == nullptr) return -FI_EINVAL;
    return post<How>(Handle::from(fid), *msg, flags, nullptr);
  }
  static ssize_t senddata(fid_ep* fid, const void* buffer, std::size_t length, void*,
                          std::uint64_t data, fi_addr_t peer, Tag... tag, void* context) {
    return post<How>(fid, buffer, length, {peer, tag...}, {true, data}, context);
  }
  static ssize_t inject(fid_ep* fid, const void* buffer, std::size_t length, fi_addr_t peer,
                        Tag... tag) {
    return post_silently<How>(fid, buffer, length, {peer, tag...}, {});
  }
  static ssize_t injectdata(fid_ep* fid, const void* buffer, std::size_t length, std::uint64_t data,
                            fi_addr_t peer, Tag... tag) {
    return post_silently<How>(fid, buffer, length, {peer, tag...}, {true, data});
  }
};

template <class Table, class Receive, class Send>
Table* operations(Direction direction) {
  static ByDirection<Table> tables({sizeof(Table), Receive::recv, Receive::recvv, Receive::recvmsg,
                                    Send::send, Send::sendv, Send::sendmsg, Send::inject,
                                    Send::senddata, Send::injectdata});
  return tables.of(direction);
}

}  // namespace

ssize_t receive_message(Handle& ep, const fi_msg& msg, std::uint64_t flags,
                        const fi_deferred_work* work) {
  constexpr std::uint64_t kFlags = FI_COMPLETION | FI_MORE | FI_MULTI_RECV | FI_TRIGGER;
  if ((flags & ~kFlags) != 0) return -FI_EBADFLAGS;
  return post_receive(ep, pieces(msg.msg_iov, msg.iov_count), {msg.addr}, msg.context, flags, work);
}

ssize_t receive_message(Handle& ep, const fi_msg_tagged& msg, std::uint64_t flags,
                        const fi_deferred_work* work) {
  constexpr std::uint64_t kFlags =
      FI_COMPLETION | FI_MORE | FI_PEEK | FI_CLAIM | FI_DISCARD | FI_TRIGGER;
  if ((flags & ~kFlags) != 0) return -FI_EBADFLAGS;
  const auto mode = receive_mode(flags);
  if (!mode) return -FI_EINVAL;
  ReceiveCall call = receive_call(ep, pieces(msg.msg_iov, msg.iov_count),
                                  {msg.addr, msg.tag, msg.ignore}, flags, msg.context);
  call.mode = *mode;
  return receive(ep, call, msg.addr, flags, work);
}

ssize_t send_message(Handle& ep, const fi_msg& msg, std::uint64_t flags,
                     const fi_deferred_work* work) {
  const bool datagrams = ep.offer() != nullptr && ep.offer()->type == FI_EP_DGRAM;
  return datagrams ? post<Unreliable>(ep, msg, flags, work) : post<Reliable>(ep, msg, flags, work);
}

ssize_t send_message(Handle& ep, const fi_msg_tagged& msg, std::uint64_t flags,
                     const fi_deferred_work* work) {
  return post<Reliable>(ep, msg, flags, work);
}

fi_ops_msg* message_operations(Direction direction) {
  return operations<fi_ops_msg, ReceiveCalls<fi_msg>, SendCalls<Reliable, fi_msg>>(direction);
}

fi_ops_msg* datagram_operations(Direction direction) {
  return operations<fi_ops_msg, ReceiveCalls<fi_msg>, SendCalls<Unreliable, fi_msg>>(direction);
}

fi_ops_tagged* tagged_operations(Direction direction) {
  return operations<fi_ops_tagged, ReceiveCalls<fi_msg_tagged, std::uint64_t, std::uint64_t>,
                    SendCalls<Reliable, fi_msg_tagged, std::uint64_t>>(direction);
}

}  // namespace weft::fabric
