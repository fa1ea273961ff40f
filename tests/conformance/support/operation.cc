// SPDX-License-Identifier: BSD-2-Clause
// How is each data transfer call made from one description?
#include "operation.h"

#include <array>

namespace weft::conformance {
namespace {

// name, receive, tagged, rma, read, message, inject, data, atomic
constexpr std::array<Traits, 31> kTraits{{
    {"send"},
    {"sendv"},
    {"sendmsg", false, false, false, false, true},
    {"inject", false, false, false, false, false, true},
    {"senddata", false, false, false, false, false, false, true},
    {"injectdata", false, false, false, false, false, true, true},
    {"tsend", false, true},
    {"tsendv", false, true},
    {"tsendmsg", false, true, false, false, true},
    {"tinject", false, true, false, false, false, true},
    {"tsenddata", false, true, false, false, false, false, true},
    {"tinjectdata", false, true, false, false, false, true, true},
    {"recv", true},
    {"recvv", true},
    {"recvmsg", true, false, false, false, true},
    {"trecv", true, true},
    {"trecvv", true, true},
    {"trecvmsg", true, true, false, false, true},
    {"write", false, false, true},
    {"writev", false, false, true},
    {"writemsg", false, false, true, false, true},
    {"inject_write", false, false, true, false, false, true},
    {"writedata", false, false, true, false, false, false, true},
    {"inject_writedata", false, false, true, false, false, true, true},
    {"read", false, false, true, true},
    {"readv", false, false, true, true},
    {"readmsg", false, false, true, true, true},
    {"atomic", false, false, false, false, false, false, false, true},
    {"inject_atomic", false, false, false, false, false, true, false, true},
    {"fetch_atomic", false, false, false, true, false, false, false, true},
    {"compare_atomic", false, false, false, true, false, false, false, true},
}};

// Three unequal pieces, so that no piece boundary coincides with one of the other side.
constexpr std::size_t kPieces = 3;
using Pieces = std::array<iovec, kPieces>;

Pieces cut(std::uint8_t* buffer, std::size_t length) {
  const std::size_t first = length / 3;
  const std::size_t second = length / 2 - first;
  return {{{buffer, first},
           {buffer + first, second},
           {buffer + first + second, length - first - second}}};
}

struct Remote {
  std::array<fi_rma_iov, 2> parts;
  std::size_t count;
};

Remote remote_of(const Operation& o) {
  if (!o.split_remote) return {{{{o.remote_address, o.length, o.key}, {}}}, 1};
  const std::uint64_t half = o.length / 2;
  return {
      {{{o.remote_address, half, o.key}, {o.remote_address + half, o.length - half, o.second_key}}},
      2};
}

ssize_t post_message(fid_ep* ep, const Operation& o, std::uint8_t* buffer, void* context) {
  Pieces pieces = cut(buffer, o.length);
  const fi_msg msg{pieces.data(), nullptr, kPieces, o.peer, context, o.data};
  return o.kind == Kind::kSendmsg ? fi_sendmsg(ep, &msg, o.flags) : fi_recvmsg(ep, &msg, o.flags);
}

ssize_t post_tagged_message(fid_ep* ep, const Operation& o, std::uint8_t* buffer, void* context) {
  Pieces pieces = cut(buffer, o.length);
  const bool no_buffer = o.length == 0 && (o.flags & (FI_PEEK | FI_DISCARD)) != 0;
  const std::size_t count = no_buffer ? 0 : kPieces;
  const fi_msg_tagged msg{pieces.data(), nullptr, count, o.peer, o.tag, o.ignore, context, o.data};
  return o.kind == Kind::kTsendmsg ? fi_tsendmsg(ep, &msg, o.flags)
                                   : fi_trecvmsg(ep, &msg, o.flags);
}

ssize_t post_rma_message(fid_ep* ep, const Operation& o, std::uint8_t* buffer, void* context) {
  Pieces pieces = cut(buffer, o.length);
  const Remote remote = remote_of(o);
  const fi_msg_rma msg{pieces.data(),       nullptr,      kPieces, o.peer,
                       remote.parts.data(), remote.count, context, o.data};
  return o.kind == Kind::kWritemsg ? fi_writemsg(ep, &msg, o.flags) : fi_readmsg(ep, &msg, o.flags);
}

// The operand and compare values of fetching operations; their buffer takes the result.
constexpr std::array<std::uint64_t, kAtomicBytes / 8> kOperand{1, 1, 1, 1, 1, 1, 1, 1};

ssize_t post_fetch(fid_ep* ep, const Operation& o, std::uint8_t* result, void* context) {
  const std::uint64_t* const operand = kOperand.data();
  const std::size_t count = o.length / 8;
  const std::uint64_t at = o.remote_address;
  if (o.kind == Kind::kFetchAtomic) {
    return fi_fetch_atomic(ep, operand, count, nullptr, result, nullptr, o.peer, at, o.key,
                           FI_UINT64, FI_ATOMIC_WRITE, context);
  }
  return fi_compare_atomic(ep, operand, count, nullptr, operand, nullptr, result, nullptr, o.peer,
                           at, o.key, FI_UINT64, FI_CSWAP_NE, context);
}

}  // namespace

const Traits& traits(Kind kind) { return kTraits[static_cast<std::size_t>(kind)]; }

ssize_t issue(fid_ep* ep, const Operation& o, std::uint8_t* b, void* context) {
  const std::size_t n = o.length;
  const std::uint64_t at = o.remote_address;
  Pieces v = cut(b, n);
  switch (o.kind) {
    case Kind::kSend:
      return fi_send(ep, b, n, nullptr, o.peer, context);
    case Kind::kSendv:
      return fi_sendv(ep, v.data(), nullptr, kPieces, o.peer, context);
    case Kind::kSendmsg:
      return post_message(ep, o, b, context);
    case Kind::kInject:
      return fi_inject(ep, b, n, o.peer);
    case Kind::kSenddata:
      return fi_senddata(ep, b, n, nullptr, o.data, o.peer, context);
    case Kind::kInjectdata:
      return fi_injectdata(ep, b, n, o.data, o.peer);
    case Kind::kTsend:
      return fi_tsend(ep, b, n, nullptr, o.peer, o.tag, context);
    case Kind::kTsendv:
      return fi_tsendv(ep, v.data(), nullptr, kPieces, o.peer, o.tag, context);
    case Kind::kTsendmsg:
      return post_tagged_message(ep, o, b, context);
    case Kind::kTinject:
      return fi_tinject(ep, b, n, o.peer, o.tag);
    case Kind::kTsenddata:
      return fi_tsenddata(ep, b, n, nullptr, o.data, o.peer, o.tag, context);
    case Kind::kTinjectdata:
      return fi_tinjectdata(ep, b, n, o.data, o.peer, o.tag);
    case Kind::kRecv:
      return fi_recv(ep, b, n, nullptr, o.peer, context);
    case Kind::kRecvv:
      return fi_recvv(ep, v.data(), nullptr, kPieces, o.peer, context);
    case Kind::kRecvmsg:
      return post_message(ep, o, b, context);
    case Kind::kTrecv:
      return fi_trecv(ep, b, n, nullptr, o.peer, o.tag, o.ignore, context);
    case Kind::kTrecvv:
      return fi_trecvv(ep, v.data(), nullptr, kPieces, o.peer, o.tag, o.ignore, context);
    case Kind::kTrecvmsg:
      return post_tagged_message(ep, o, b, context);
    case Kind::kWrite:
      return fi_write(ep, b, n, nullptr, o.peer, at, o.key, context);
    case Kind::kWritev:
      return fi_writev(ep, v.data(), nullptr, kPieces, o.peer, at, o.key, context);
    case Kind::kWritemsg:
      return post_rma_message(ep, o, b, context);
    case Kind::kInjectWrite:
      return fi_inject_write(ep, b, n, o.peer, at, o.key);
    case Kind::kWritedata:
      return fi_writedata(ep, b, n, nullptr, o.data, o.peer, at, o.key, context);
    case Kind::kInjectWritedata:
      return fi_inject_writedata(ep, b, n, o.data, o.peer, at, o.key);
    case Kind::kRead:
      return fi_read(ep, b, n, nullptr, o.peer, at, o.key, context);
    case Kind::kReadv:
      return fi_readv(ep, v.data(), nullptr, kPieces, o.peer, at, o.key, context);
    case Kind::kReadmsg:
      return post_rma_message(ep, o, b, context);
    case Kind::kAtomic:
      return fi_atomic(ep, b, n / 8, nullptr, o.peer, at, o.key, FI_UINT64, FI_ATOMIC_WRITE,
                       context);
    case Kind::kInjectAtomic:
      return fi_inject_atomic(ep, b, n / 8, o.peer, at, o.key, FI_UINT64, FI_ATOMIC_WRITE);
    case Kind::kFetchAtomic:
    case Kind::kCompareAtomic:
      return post_fetch(ep, o, b, context);
  }
  return -FI_ENOSYS;
}

}  // namespace weft::conformance
