// SPDX-License-Identifier: BSD-2-Clause
// How are connections within the host made and ended?
#include "mailbox_connections.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <utility>

#include "base/path_mtu.h"
#include "os/runtime_dir.h"
#include "rdm/connection_message.h"
#include "roce/route.h"

namespace weft::device {
namespace {

constexpr auto kNever = std::chrono::hours(24 * 365);
constexpr std::uint32_t kContextMask = 0xFF'FFFF;

// Slots lose nothing, and their processes are watched: no time of the network counts.
cm::AgentOptions agent_options(const os::SocketAddress& name) {
  cm::AgentOptions options;
  options.port = static_cast<std::uint16_t>(MailboxConnections::kFirstNumber >> 16 | name.port());
  options.guid = os::random_number();
  options.replies = {kNever, kNever, kNever};
  options.undecided_limit = kNever;
  return options;
}

cm::Remote remote_at(const os::SocketAddress& address) { return {address, cm::Carrier::kMailbox}; }

// Errors of a flow to a mailbox that is gone.
bool means_gone(int error) {
  return error == ENOENT || error == EPERM || error == ECONNRESET || error == EHOSTUNREACH;
}

// An errno, or 0 when the message is in the slot.
int send_over(link::Flow& flow, std::span<const std::byte> message, bool until_delivered) {
  const LocalRange piece{const_cast<std::byte*>(message.data()), message.size()};
  link::SendRequest request;
  request.operation = link::MessageOperation::kControl;
  request.must_copy = true;
  request.until_delivered = until_delivered;
  request.pieces = {&piece, 1};
  request.length = message.size();
  const link::Outcome outcome = flow.send(request);
  switch (outcome.state) {
    case link::Outcome::State::kDone:
    case link::Outcome::State::kPending:
      return 0;
    case link::Outcome::State::kAgain:
      return EAGAIN;
    case link::Outcome::State::kFailed:
      return outcome.error;
  }
  return EINVAL;
}

// A MAD without the zeros at its end fits into a cell of the ring, unless private data follow it.
std::span<const std::byte> shortened(std::span<const std::byte> message) {
  if (message.size() > wire::kMadBytes) return message;
  while (!message.empty() && message.back() == std::byte{})
    message = message.first(message.size() - 1);
  return message;
}

}  // namespace

MailboxConnections::MailboxConnections(const os::SocketAddress& name, const Options& options,
                                       Open open, Stats& stats)
    : options_(options),
      name_(name),
      open_(std::move(open)),
      agent_(*this, agent_options(name), stats) {}

// As over packets: the context is of one connection alone.
rdm::Introduction MailboxConnections::introduce() {
  rdm::Introduction me;
  me.queue_pair = roce::queue_pair_at(name_.port());
  me.context = ++last_context_ & kContextMask;
  me.path_mtu = kLeastPathMtu;
  return me;
}

MailboxConnections::ConnectionEnd* MailboxConnections::find(cm::ConnectionId id) {
  const auto found = ends_.find(id);
  return found != ends_.end() ? &found->second : nullptr;
}

std::uint64_t MailboxConnections::random() { return os::random_number(); }

Result<link::ConnectionNumber> MailboxConnections::request(const os::SocketAddress& listener,
                                                           std::span<const std::byte> data,
                                                           link::ConnectionUser& user) {
  if (const Status fits = rdm::check_connection_data(data); !fits) return fits.error();
  auto way = open_(listener);
  if (!way) return way.error();
  ConnectionEnd asking;
  asking.user = &user;
  asking.facing = std::move(way).value();
  asking.deadline = os::coarse_now() + options_.request_timeout;
  cm::ConnectRequest wanted;
  wanted.to = remote_at(listener);
  wanted.req = rdm::write_request({.me = introduce(), .name = name_});
  wanted.req.service = rdm::connection_service(listener.port());
  wanted.more.assign(data.begin(), data.end());
  wanted.repeats = {kNever, kNever, kNever};
  starting_ = &asking;
  const auto id = agent_.connect(wanted, *this, nullptr, os::coarse_now());
  starting_ = nullptr;
  if (!id) return id.error();
  if (send_error_ != 0) {
    agent_.abandon(id.value(), os::coarse_now());
    return Error{send_error_, "the listener takes no message"};
  }
  ends_.emplace(id.value(), std::move(asking));
  return id.value();
}

std::optional<cm::ConnectionId> MailboxConnections::adopt(const link::ConnectionRequest& request) {
  const auto id =
      agent_.adopt(remote_at(request.peer), request.message, *this, nullptr, os::coarse_now());
  return id ? std::optional(id.value()) : std::nullopt;
}

Result<link::ConnectionNumber> MailboxConnections::accept(const link::ConnectionRequest& request,
                                                          std::span<const std::byte> data,
                                                          link::ConnectionUser& user) {
  if (const Status fits = rdm::check_connection_data(data); !fits) return fits.error();
  auto way = open_(request.peer);
  if (!way) return way.error();
  const auto id = adopt(request);
  if (!id) return Error{ENOENT, "the request is accepted already"};
  ConnectionEnd& end = ends_[*id];
  end.user = &user;
  end.stage = EndStage::kAccepted;
  end.facing = std::move(way).value();
  cm::AcceptRequest reply;
  reply.rep = rdm::write_reply({introduce(), {}});
  reply.more.assign(data.begin(), data.end());
  static_cast<void>(agent_.accept(*id, reply, *this, nullptr, os::coarse_now()));
  if (send_error_ == 0) return *id;
  const int error = send_error_;
  finish(*id);
  return Error{error, "the requester takes no message"};
}

void MailboxConnections::turn_down(const link::ConnectionRequest& request) {
  if (const auto id = adopt(request)) reject(*id, {});
}

// With an established connection the DREQ goes behind its data. Nothing is left of it: the peer's
// answer is not awaited.
void MailboxConnections::disconnect(link::ConnectionNumber number) {
  ConnectionEnd* const end = find(number);
  if (end == nullptr) return;
  if (end->stage == EndStage::kEstablished) by_source_.erase(end->source);
  agent_.disconnect(number, {}, os::coarse_now());
  finish(number);
}

void MailboxConnections::finish(cm::ConnectionId id) {
  agent_.abandon(id, os::coarse_now());
  ends_.erase(id);
}

Status MailboxConnections::listen(std::size_t backlog, link::ListenerUser& user) {
  const auto service =
      agent_.listen(rdm::connection_service(name_.port()), backlog, *this, nullptr);
  if (!service) return service.error();
  listener_ = &user;
  service_ = service.value();
  return {};
}

void MailboxConnections::set_backlog(std::size_t backlog) {
  agent_.set_backlog(service_, backlog);
  agent_.deliver();
}

void MailboxConnections::reject(link::ConnectionNumber request, std::span<const std::byte> data) {
  decide(request);
  static_cast<void>(agent_.reject(request, wire::CmReason::kConsumer, rdm::write_rejection(data),
                                  os::coarse_now()));
}

void MailboxConnections::forward(link::ConnectionNumber request) {
  decide(request);
  static_cast<void>(agent_.forward(request, os::coarse_now()));
}

// A REJ of a listener, which has no flow to the requester, goes over one of its own.
void MailboxConnections::send(const cm::Remote& to, cm::ConnectionId id,
                              std::span<const std::byte> message) {
  ConnectionEnd* const end = starting_ != nullptr ? starting_ : find(id);
  if (end == nullptr) {
    if (id != 0 && !send_once(to.address, message))
      unsent_.push_back({to.address, {message.begin(), message.end()}});
    return;
  }
  const std::shared_ptr<link::Flow> way =
      end->facing != nullptr ? end->facing : end->established.lock();
  send_error_ =
      way != nullptr ? send_over(*way, shortened(message), starting_ != nullptr) : ECONNRESET;
}

// True when it is sent, or its receiver is gone.
bool MailboxConnections::send_once(const os::SocketAddress& to,
                                   std::span<const std::byte> message) {
  auto way = open_(to);
  if (!way) return means_gone(way.error().code);
  const int error = send_over(*way.value(), message, false);
  return error == 0 || means_gone(error);
}

void MailboxConnections::send_again() {
  std::erase_if(unsent_, [&](const Unsent& each) { return send_once(each.to, each.message); });
}

// True for a DREQ of another source than that of the connection, whose numbers can be guessed.
bool MailboxConnections::is_forged(std::uint32_t source, std::span<const std::byte> message) const {
  if (message.size() < wire::kMadBytes) return false;
  const auto mad = wire::parse_cm(message.first(wire::kMadBytes));
  const auto* const dreq = mad ? std::get_if<wire::CmDreq>(&mad->message) : nullptr;
  if (dreq == nullptr) return false;
  const auto found = by_source_.find(source);
  return found == by_source_.end() || found->second != dreq->remote_id;
}

bool MailboxConnections::take(std::uint32_t source, const os::SocketAddress& address,
                              std::span<const std::byte> message) {
  if (is_forged(source, message)) return false;
  std::array<std::byte, wire::kMadBytes> whole{};
  if (message.size() < whole.size()) {
    std::ranges::copy(message, whole.begin());
    message = whole;
  }
  arrived_ = {source, message};
  const bool taken = agent_.take(remote_at(address), message, os::coarse_now());
  agent_.deliver();
  const bool again = std::exchange(arrived_, std::nullopt)->asks_again;
  return taken && !again && by_source_.contains(source);
}

// False when that request was decided, or had ended, before.
bool MailboxConnections::decide(cm::ConnectionId id) {
  const auto request = undecided_.extract(id);
  if (request.empty()) return false;
  by_source_[request.mapped()] = 0;
  return true;
}

void MailboxConnections::handle(const cm::CmEvent& event) {
  using enum cm::EventKind;
  if (event.kind == kRequest) return on_request(event);
  ConnectionEnd* const end = find(event.id);
  if (end == nullptr) {
    if (event.kind == kResolve) agent_.abandon(event.id, os::coarse_now());
    if (decide(event.id)) listener_->withdrawn(event.id);
    return;
  }
  if (event.kind == kReply) return on_reply(event, *end);
  if (event.kind == kEstablished) return establish(event.id, *end, {});
  if (end->stage == EndStage::kEstablished) {
    link::ConnectionUser& user = *end->user;
    by_source_.erase(end->source);
    ends_.erase(event.id);
    return user.ended();
  }
  std::vector<std::byte> data;
  if (event.kind == kRejected) {
    const auto& rej = std::get<wire::CmRej>(event.mad->message);
    if (rej.reason == wire::CmReason::kConsumer) data = rdm::read_rejection(rej.data, event.more);
  }
  fail(event.id, rdm::error_of(event, end->stage == EndStage::kAsked), data);
}

void MailboxConnections::on_request(const cm::CmEvent& event) {
  if (by_source_.contains(arrived_->source)) {  // a slot carries one
    arrived_->asks_again = true;
    return agent_.abandon(event.id, os::coarse_now());
  }
  by_source_[arrived_->source] = event.id;
  undecided_[event.id] = arrived_->source;
  link::ConnectionRequest request;
  request.peer = event.remote.address;
  request.within_host = true;
  request.message.assign(arrived_->message.begin(), arrived_->message.end());
  request.data.assign(event.more.begin(), event.more.end());
  listener_->requested(event.id, std::move(request));
}

void MailboxConnections::on_reply(const cm::CmEvent& event, ConnectionEnd& end) {
  auto way = open_(event.remote.address);
  if (!way) return fail(event.id, means_gone(way.error().code) ? ECONNRESET : way.error().code);
  end.facing = std::move(way).value();
  static_cast<void>(agent_.confirm(event.id, {}, os::coarse_now()));
  if (send_error_ != 0) return fail(event.id, ECONNRESET);
  establish(event.id, end, event.more);
}

// Its source is that of the message which is being taken.
void MailboxConnections::establish(cm::ConnectionId id, ConnectionEnd& end,
                                   std::span<const std::byte> data) {
  end.stage = EndStage::kEstablished;
  end.source = arrived_->source;
  end.established = end.facing;
  by_source_[end.source] = id;
  end.user->connected(end.source, std::exchange(end.facing, nullptr), data);
}

void MailboxConnections::fail(cm::ConnectionId id, int error, std::span<const std::byte> data) {
  link::ConnectionUser& user = *find(id)->user;
  finish(id);
  user.failed(error, data);
}

void MailboxConnections::source_closed(std::uint32_t source) {
  const auto found = by_source_.find(source);
  if (found == by_source_.end()) return;
  const cm::ConnectionId id = found->second;
  by_source_.erase(found);
  if (ConnectionEnd* const end = find(id)) {
    link::ConnectionUser& user = *end->user;
    finish(id);
    user.ended();
  } else if (undecided_.erase(id) != 0) {
    agent_.abandon(id, os::coarse_now());
    listener_->withdrawn(id);
  }
}

bool MailboxConnections::is_gone(ConnectionEnd& end) {
  delivered_ = false;
  const bool gone = end.facing->check_peer(*this) != link::PeerState::kAlive;
  if (!gone) end.facing->progress(*this);
  if (delivered_) {
    end.delivered = true;
    end.deadline = os::Time::max();  // its program may take its time
  }
  return gone;
}

// The errno of an attempt that nothing will answer, or 0.
int MailboxConnections::verdict(ConnectionEnd& end, os::Time now) {
  if (end.stage == EndStage::kEstablished) return 0;
  if (end.facing != nullptr && is_gone(end))
    return end.stage == EndStage::kAsked ? ECONNREFUSED : ECONNABORTED;
  return now >= end.deadline ? ETIMEDOUT : 0;
}

// A listener has closed in good order: an endpoint that was opened for the request before may still
// accept it.
bool MailboxConnections::may_come(ConnectionEnd& end, os::Time now) {
  const bool left = end.stage == EndStage::kAsked && end.delivered && end.facing != nullptr &&
                    end.facing->check_peer(*this) == link::PeerState::kLeft;
  if (!left) return false;
  end.facing.reset();
  end.deadline = now + options_.request_timeout;
  return true;
}

void MailboxConnections::check(const std::function<void()>& take_in) {
  const os::Time now = os::coarse_now();
  agent_.advance(now);
  send_again();
  std::vector<cm::ConnectionId> vain;
  for (auto& [id, end] : ends_) {
    if (verdict(end, now) != 0) vain.push_back(id);
  }
  if (vain.empty()) return;
  take_in();
  for (const cm::ConnectionId id : vain) {
    ConnectionEnd* const end = find(id);
    const int error = end != nullptr ? verdict(*end, now) : 0;
    if (error != 0 && !may_come(*end, now)) fail(id, error);
  }
}

}  // namespace weft::device
