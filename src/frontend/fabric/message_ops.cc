// SPDX-License-Identifier: BSD-2-Clause
// What do the calls for messages do? fi_msg(3), fi_tagged(3)
#include <optional>

#include "transfer.h"

namespace weft::fabric {
namespace {

using link::MessageOperation;
using messaging::ReceiveCall;
using messaging::SendCall;

// The kinds of messages; MessageCalls exist once for each.
struct UntaggedKind {
  using Description = fi_msg;
  using Table = fi_ops_msg;
  static constexpr MessageOperation kOperation = MessageOperation::kMessage;
  static constexpr std::uint64_t kSendFlags = kCallFlags;
  static constexpr std::uint64_t kInjectFlags = 0;  // those by default that count
  static constexpr auto kSend = send;
};
struct DatagramKind : UntaggedKind {
  static constexpr std::uint64_t kSendFlags = kDatagramTxFlags | FI_TRIGGER;
  static constexpr std::uint64_t kInjectFlags = FI_MULTICAST;
  static constexpr auto kSend = send_datagram;
};
struct TaggedKind : UntaggedKind {
  using Description = fi_msg_tagged;
  using Table = fi_ops_tagged;
  static constexpr MessageOperation kOperation = MessageOperation::kTagged;
};

// A receive with the flags of the call, or the default ones. fi_msg(3): FI_MULTI_RECV makes it take
// several messages, in a buffer of one SGE.
ssize_t post(Handle& ep, std::span<const LocalRange> list, Descriptors descriptors,
             fi_addr_t source, void* context, std::uint64_t flags,
             const fi_deferred_work* work = nullptr) {
  ReceiveCall call;
  call.sges = list;
  call.report = report(ep.rx_selective(), flags, context);
  if ((flags & FI_MULTI_RECV) != 0) [[unlikely]] {
    if (!ep.multi_receive()) return -FI_EBADFLAGS;
    if (list.size() != 1) return -FI_EINVAL;
    call.multi = true;
    call.least = ep.min_multi_receive();
  }
  return receive(ep, call, descriptors, source, flags, work);
}

// The same for a tagged message.
ssize_t post(Handle& ep, std::span<const LocalRange> list, Descriptors descriptors,
             fi_addr_t source, void* context, std::uint64_t flags, std::uint64_t tag,
             std::uint64_t ignore, ReceiveCall::Mode mode = ReceiveCall::Mode::kPost,
             const fi_deferred_work* work = nullptr) {
  ReceiveCall call;
  call.tagged = true;
  call.mode = mode;
  call.tag = tag;
  call.ignore = ignore;
  call.sges = list;
  call.report = report(ep.rx_selective(), flags, context);
  return receive(ep, call, descriptors, source, flags, work);
}

// FI_DISCARD alone has no meaning: it says what becomes of what is peeked at or was claimed.
std::optional<ReceiveCall::Mode> receive_mode(std::uint64_t flags) {
  switch (flags & (FI_PEEK | FI_CLAIM | FI_DISCARD)) {
    case 0:
      return ReceiveCall::Mode::kPost;
    case FI_PEEK:
      return ReceiveCall::Mode::kPeek;
    case FI_PEEK | FI_CLAIM:
      return ReceiveCall::Mode::kPeekClaim;
    case FI_PEEK | FI_DISCARD:
      return ReceiveCall::Mode::kPeekDiscard;
    case FI_CLAIM:
      return ReceiveCall::Mode::kTakeClaimed;
    case FI_CLAIM | FI_DISCARD:
      return ReceiveCall::Mode::kDiscardClaimed;
    default:
      return std::nullopt;
  }
}

// A send whose report is still missing.
template <class Kind>
SendCall unreported(std::span<const LocalRange> list, fi_addr_t peer, RemoteData data,
                    std::uint64_t tag = 0) {
  SendCall call;
  call.peer = peer;
  call.operation = Kind::kOperation;
  call.has_data = data.given;
  call.tag = tag;
  call.data = data.value;
  call.sges = list;
  return call;
}

template <class Kind, class... Tag>
ssize_t send_one(fid_ep* fid, const void* buffer, std::size_t length, void* descriptor,
                 fi_addr_t peer, void* context, RemoteData data, Tag... tag) {
  Handle& ep = Handle::from(fid);
  const std::uint64_t flags = ep.tx_flags;
  const LocalRange one = message_sge(buffer, length);
  SendCall call = unreported<Kind>({&one, 1}, peer, data, tag...);
  call.report = report(ep.tx_selective(), flags, context);
  return Kind::kSend(ep, call, &descriptor, flags, nullptr);
}

template <class Kind, class... Tag>
ssize_t inject_one(fid_ep* fid, const void* buffer, std::size_t length, fi_addr_t peer,
                   RemoteData data, Tag... tag) {
  Handle& ep = Handle::from(fid);
  const std::uint64_t flags = Kind::kInjectFlags != 0 ? ep.tx_flags & Kind::kInjectFlags : 0;
  const LocalRange one = message_sge(buffer, length);
  SendCall call = unreported<Kind>({&one, 1}, peer, data, tag...);
  call.report = messaging::Report::silence();
  return Kind::kSend(ep, call, nullptr, flags, nullptr);
}

std::uint64_t tag_of(const fi_msg&) { return 0; }
std::uint64_t tag_of(const fi_msg_tagged& msg) { return msg.tag; }

template <class Kind>
ssize_t send_described(Handle& ep, const typename Kind::Description& msg, std::uint64_t flags,
                       const fi_deferred_work* work) {
  if ((flags & ~Kind::kSendFlags) != 0) return -FI_EBADFLAGS;
  const RemoteData data{(flags & FI_REMOTE_CQ_DATA) != 0, msg.data};
  SendCall call = unreported<Kind>(sges(msg.msg_iov, msg.iov_count), msg.addr, data, tag_of(msg));
  call.report = report(ep.tx_selective(), flags, msg.context);
  return Kind::kSend(ep, call, msg.desc, flags, work);
}

// The C functions for messages of one kind. `Tag` is the type of their tags, or no type.
template <class Kind, class... Tag>
struct MessageCalls {
  using Description = typename Kind::Description;
  using Table = typename Kind::Table;

  static ssize_t recv(fid_ep* fid, void* buffer, std::size_t length, void* descriptor,
                      fi_addr_t source, Tag... tag, Tag... ignore, void* context) {
    Handle& ep = Handle::from(fid);
    const std::uint64_t flags = ep.rx_flags;
    const LocalRange one = message_sge(buffer, length);
    return post(ep, {&one, 1}, &descriptor, source, context, flags, tag..., ignore...);
  }
  static ssize_t recvv(fid_ep* fid, const iovec* list, void** descriptors, std::size_t count,
                       fi_addr_t source, Tag... tag, Tag... ignore, void* context) {
    Handle& ep = Handle::from(fid);
    return post(ep, sges(list, count), descriptors, source, context, ep.rx_flags, tag...,
                ignore...);
  }
  static ssize_t recvmsg(fid_ep* fid, const Description* msg, std::uint64_t flags) {
    if (msg == nullptr) return -FI_EINVAL;
    return receive_message(Handle::from(fid), *msg, flags, nullptr);
  }
  static ssize_t send(fid_ep* fid, const void* buffer, std::size_t length, void* descriptor,
                      fi_addr_t peer, Tag... tag, void* context) {
    return send_one<Kind>(fid, buffer, length, descriptor, peer, context, {}, tag...);
  }
  static ssize_t sendv(fid_ep* fid, const iovec* list, void** descriptors, std::size_t count,
                       fi_addr_t peer, Tag... tag, void* context) {
    Handle& ep = Handle::from(fid);
    const std::uint64_t flags = ep.tx_flags;
    SendCall call = unreported<Kind>(sges(list, count), peer, {}, tag...);
    call.report = report(ep.tx_selective(), flags, context);
    return Kind::kSend(ep, call, descriptors, flags, nullptr);
  }
  static ssize_t sendmsg(fid_ep* fid, const Description* msg, std::uint64_t flags) {
    if (msg == nullptr) return -FI_EINVAL;
    return send_described<Kind>(Handle::from(fid), *msg, flags, nullptr);
  }
  static ssize_t senddata(fid_ep* fid, const void* buffer, std::size_t length, void* descriptor,
                          std::uint64_t data, fi_addr_t peer, Tag... tag, void* context) {
    return send_one<Kind>(fid, buffer, length, descriptor, peer, context, {true, data}, tag...);
  }
  static ssize_t inject(fid_ep* fid, const void* buffer, std::size_t length, fi_addr_t peer,
                        Tag... tag) {
    return inject_one<Kind>(fid, buffer, length, peer, {}, tag...);
  }
  static ssize_t injectdata(fid_ep* fid, const void* buffer, std::size_t length, std::uint64_t data,
                            fi_addr_t peer, Tag... tag) {
    return inject_one<Kind>(fid, buffer, length, peer, {true, data}, tag...);
  }

  static constexpr Table table() {
    return {sizeof(Table), recv,    recvv,  recvmsg,  send,
            sendv,         sendmsg, inject, senddata, injectdata};
  }
};

ByDirection<fi_ops_msg> untagged_tables(MessageCalls<UntaggedKind>::table());
ByDirection<fi_ops_msg> datagram_tables(MessageCalls<DatagramKind>::table());
ByDirection<fi_ops_tagged> tagged_tables(MessageCalls<TaggedKind, std::uint64_t>::table());

}  // namespace

ssize_t receive_message(Handle& ep, const fi_msg& msg, std::uint64_t flags,
                        const fi_deferred_work* work) {
  constexpr std::uint64_t kFlags = FI_COMPLETION | FI_MORE | FI_MULTI_RECV | FI_TRIGGER;
  if ((flags & ~kFlags) != 0) return -FI_EBADFLAGS;
  return post(ep, sges(msg.msg_iov, msg.iov_count), msg.desc, msg.addr, msg.context, flags, work);
}

ssize_t receive_message(Handle& ep, const fi_msg_tagged& msg, std::uint64_t flags,
                        const fi_deferred_work* work) {
  constexpr std::uint64_t kFlags =
      FI_COMPLETION | FI_MORE | FI_PEEK | FI_CLAIM | FI_DISCARD | FI_TRIGGER;
  if ((flags & ~kFlags) != 0) return -FI_EBADFLAGS;
  const auto mode = receive_mode(flags);
  if (!mode) return -FI_EINVAL;
  return post(ep, sges(msg.msg_iov, msg.iov_count), msg.desc, msg.addr, msg.context, flags, msg.tag,
              msg.ignore, *mode, work);
}

ssize_t send_message(Handle& ep, const fi_msg& msg, std::uint64_t flags,
                     const fi_deferred_work* work) {
  const bool datagrams = ep.offer() != nullptr && ep.offer()->type == FI_EP_DGRAM;
  return datagrams ? send_described<DatagramKind>(ep, msg, flags, work)
                   : send_described<UntaggedKind>(ep, msg, flags, work);
}

ssize_t send_message(Handle& ep, const fi_msg_tagged& msg, std::uint64_t flags,
                     const fi_deferred_work* work) {
  return send_described<TaggedKind>(ep, msg, flags, work);
}

fi_ops_msg* message_operations(Direction direction) { return untagged_tables.of(direction); }
fi_ops_msg* datagram_operations(Direction direction) { return datagram_tables.of(direction); }
fi_ops_tagged* tagged_operations(Direction direction) { return tagged_tables.of(direction); }

}  // namespace weft::fabric
