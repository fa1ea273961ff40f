// SPDX-License-Identifier: BSD-2-Clause
// How are connections within the host made and ended?
#include "mailbox_connections.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <utility>
#include <variant>

#include "base/path_mtu.h"
#include "device/port.h"
#include "os/interfaces.h"
#include "os/runtime_dir.h"
#include "rdm/connection_message.h"
#include "roce/route.h"

namespace weft::device {
namespace {

constexpr std::uint32_t kContextMask = 0xFF'FFFF;
// Each end costs system calls, and many wait for answers where many processes start at once.
constexpr auto kBetweenChecks = std::chrono::milliseconds(40);
// Looking for the requester of an undecided request takes several system calls.
constexpr auto kBetweenLooks = std::chrono::milliseconds(100);
constexpr std::size_t kLooksAtOnce = 64;
// When a sleeper looks whether the listener that has read its REQ has closed.
constexpr auto kSleepersLook = std::chrono::milliseconds(500);

cm::Remote remote_at(const os::SocketAddress& address) { return {address, cm::Carrier::kMailbox}; }

// An errno, or 0 when the message is in the slot.
int send_over(link::Flow& flow, std::span<const std::byte> message) {
  const LocalRange sge{const_cast<std::byte*>(message.data()), message.size()};
  link::SendRequest request;
  request.operation = link::MessageOperation::kControl;
  request.must_copy = true;
  request.sges = {&sge, 1};
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

// Where the port that is known as `name` was asked. Any process of the host may have written it:
// only an address that may be the port's counts.
os::SocketAddress asked_address(const wire::CmReq& req, const os::SocketAddress& name) {
  const auto request = rdm::read_request(req);
  if (!request || request->listener.family() != name.family()) return {};
  const bool own = request->listener == name || os::is_local_address(request->listener.get());
  return own ? request->listener : os::SocketAddress();
}

// A MAD without the zeros at its end fits into a cell of the ring, unless private data follow it.
std::span<const std::byte> shortened(std::span<const std::byte> message) {
  if (message.size() > wire::kMadBytes) return message;
  while (!message.empty() && message.back() == std::byte{})
    message = message.first(message.size() - 1);
  return message;
}

// A whole MAD, or a shortened one.
std::optional<wire::CmMad> parse(std::span<const std::byte> message) {
  if (message.size() > wire::kMadBytes + wire::kMaxBytesBehindMad) return std::nullopt;
  std::array<std::byte, wire::kMadBytes> mad{};
  std::copy_n(message.begin(), std::min(message.size(), mad.size()), mad.begin());
  return wire::parse_cm(mad);
}

// The communication id of the receiver's end; 0 of a SIDR message.
cm::ConnectionId addressee_of(const wire::CmMessage& message) {
  return std::visit(
      [](const auto& each) -> cm::ConnectionId {
        if constexpr (requires { each.remote_id; }) return each.remote_id;
        return 0;
      },
      message);
}

// The bytes behind the MAD.
std::span<const std::byte> more_of(std::span<const std::byte> message) {
  return message.subspan(std::min(message.size(), wire::kMadBytes));
}

}  // namespace

MailboxConnections::MailboxConnections(rdm::PortConnections& port, link::PortLink& link,
                                       const shm::Sender& sender, const Options& options,
                                       shm::MadSink sent, Stats& stats)
    : port_(port),
      agent_(port.agent()),
      options_(options),
      name_(sender.address),
      link_(link),
      mads_(sender, std::move(sent), stats),
      stats_(stats) {
  port.attach(cm::Carrier::kMailbox, *this);
}

MailboxConnections::~MailboxConnections() {
  for (const auto& [id, end] : ends_) {
    if (end.stage == EndStage::kAsked) agent_.disconnect(id, {}, os::coarse_now());
  }
}

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

// The listener may have come within the host between the two looks.
Result<link::ConnectionNumber> MailboxConnections::request(const os::SocketAddress& listener,
                                                           std::span<const std::byte> data,
                                                           link::ConnectionUser& user) {
  rdm::LinkConnections* const remote = port_.link_by(cm::Carrier::kPackets);
  auto asked = ask(listener, data, user);
  const bool elsewhere =
      !asked && remote != nullptr && Port::may_be_elsewhere(listener, asked.error().code);
  if (!elsewhere) return asked;
  asked = ask(listener, data, user);
  return asked ? asked : remote->request(listener, data, user);
}

Result<link::ConnectionNumber> MailboxConnections::ask(const os::SocketAddress& listener,
                                                       std::span<const std::byte> data,
                                                       link::ConnectionUser& user) {
  auto sender = mads_.sender_to(listener);
  if (!sender) return sender.error();
  ConnectionEnd asking;
  asking.user = &user;
  asking.listener = std::move(sender).value();
  asking.deadline = os::coarse_now() + options_.request_timeout;
  cm::ConnectRequest wanted;
  wanted.to = remote_at(listener);
  rdm::FlowRequest said{.me = introduce(), .name = name_, .listener = listener};
  said.proof = rdm::prove(port_.authorization(), os::random_number(), said.me, listener.port());
  wanted.req = rdm::write_request(said);
  wanted.req.service = rdm::connection_service(listener.port());
  wanted.more.assign(data.begin(), data.end());
  wanted.repeats = cm::kNoRepetition;
  starting_ = &asking;
  const auto id = agent_.connect(wanted, *this, nullptr, os::coarse_now());
  starting_ = nullptr;
  if (!id) return id.error();
  ends_.emplace(id.value(), std::move(asking));
  return id.value();
}

Result<link::ConnectionNumber> MailboxConnections::accept(const link::ConnectionRequest& request,
                                                          std::span<const std::byte> data,
                                                          link::ConnectionUser& user) {
  auto flow = link_.connect(request.peer);
  if (!flow) return flow.error();
  const auto adopted = agent_.adopt(remote_at(request.peer), request.req, *this, nullptr, now());
  if (!adopted) return Error{ENOENT, "the request is accepted already"};
  const cm::ConnectionId id = adopted.value();
  ConnectionEnd& end = ends_[id];
  end.user = &user;
  end.stage = EndStage::kAccepted;
  end.deadline = os::coarse_now() + options_.peer_timeout;
  end.facing = std::move(flow).value();
  cm::AcceptRequest reply;
  reply.rep = rdm::write_reply({introduce(), {}});
  reply.more.assign(data.begin(), data.end());
  static_cast<void>(agent_.accept(id, reply, *this, nullptr, os::coarse_now()));
  if (send_error_ == 0) return id;
  const int error = send_error_;
  finish(id);
  return Error{error, "the requester takes no message"};
}

// With an established connection the DREQ goes behind its data. Nothing is left of it: the peer's
// answer is not awaited.
bool MailboxConnections::disconnect(link::ConnectionNumber number) {
  ConnectionEnd* const end = find(number);
  if (end == nullptr) return false;
  if (end->stage == EndStage::kEstablished) by_source_.erase(end->source);
  if (!mads_.drop(number)) agent_.disconnect(number, {}, os::coarse_now());
  finish(number);
  return true;
}

void MailboxConnections::finish(cm::ConnectionId id) {
  agent_.abandon(id, os::coarse_now());
  ends_.erase(id);
}

// Without a flow to the peer it is a datagram. A message that belongs to no connection is answered
// only where no source can be refused.
void MailboxConnections::send(const os::SocketAddress& to, cm::ConnectionId id,
                              std::span<const std::byte> message) {
  ConnectionEnd* const end = starting_ != nullptr ? starting_ : find(id);
  const bool asks = end != nullptr && end->stage == EndStage::kAsked && end->facing == nullptr;
  if (end != nullptr && !asks) {
    const std::shared_ptr<link::Flow> flow =
        end->facing != nullptr ? end->facing : end->established.lock();
    send_error_ = flow != nullptr ? send_over(*flow, shortened(message)) : ECONNRESET;
  } else if (id != 0 || in_datagram_) {
    const auto place = mads_.send(to, id, message, starting_ == nullptr);
    if (starting_ != nullptr) starting_->req = place;
  }
}

// True for requests, which need no source; for what the source of a connection says about another
// one, as each has a source of its own; and for a DREQ, whose numbers can be guessed, of a source
// without a connection.
bool MailboxConnections::is_forged(std::uint32_t source, const wire::CmMessage& message) const {
  if (std::holds_alternative<wire::CmReq>(message)) return true;
  if (std::holds_alternative<wire::CmSidrReq>(message)) return true;
  const auto found = by_source_.find(source);
  if (found == by_source_.end()) return std::holds_alternative<wire::CmDreq>(message);
  return addressee_of(message) != found->second;
}

bool MailboxConnections::take(std::uint32_t source, const os::SocketAddress& address,
                              std::span<const std::byte> message) {
  const auto mad = parse(message);
  if (!mad) return stats_.add(Stat::kMalformedPackets), false;
  if (is_forged(source, mad->message)) return false;
  arrived_from_ = source;
  hand_over(address, *mad, more_of(message));
  return by_source_.contains(source);
}

void MailboxConnections::take_datagram(const os::SocketAddress& address,
                                       std::span<const std::byte> message) {
  const bool whole = message.size() >= wire::kMadBytes && address.length() != 0;
  const auto mad = whole ? parse(message) : std::nullopt;
  if (!mad) return stats_.add(Stat::kMalformedPackets);
  const bool known = std::holds_alternative<wire::CmReq>(mad->message) ||
                     std::holds_alternative<wire::CmRej>(mad->message);
  if (!known) {
    stats_.add(Stat::kConnectionMessages);
    return stats_.add(Stat::kInvalidMessages);
  }
  in_datagram_ = true;
  hand_over(address, *mad, more_of(message));
  in_datagram_ = false;
}

void MailboxConnections::hand_over(const os::SocketAddress& address, const wire::CmMad& mad,
                                   std::span<const std::byte> more) {
  agent_.take(remote_at(address), mad, more, now());
  agent_.deliver(cm::Carrier::kMailbox);
}

void MailboxConnections::handle(const cm::CmEvent& event) {
  using enum cm::EventKind;
  ConnectionEnd* const end = find(event.id);
  if (end == nullptr) return;
  if (event.kind == kReply) return on_reply(event, *end);
  if (event.kind == kEstablished) return establish(event.id, *end, {});
  if (end->stage == EndStage::kEstablished) {
    link::ConnectionUser& user = *end->user;
    by_source_.erase(end->source);
    ends_.erase(event.id);
    return user.ended();
  }
  const auto [error, data] = rdm::failure_of(event, end->stage == EndStage::kAsked);
  fail(event.id, error, data);
}

void MailboxConnections::on_request(const cm::CmEvent& event, link::ListenerUser& listener) {
  listener_ = &listener;
  undecided_.push_back({event.id, event.remote.address, os::coarse_now()});
  link::ConnectionRequest request;
  request.peer = event.remote.address;
  request.within_host = true;
  request.asked = asked_address(std::get<wire::CmReq>(event.mad->message), name_);
  request.req = *event.mad;
  request.data.assign(event.more.begin(), event.more.end());
  listener.requested(event.id, std::move(request));
}

void MailboxConnections::on_reply(const cm::CmEvent& event, ConnectionEnd& end) {
  auto flow = link_.connect(event.remote.address);
  if (!flow) {
    const int error = flow.error().code;
    if (error == link::kOtherAuthorization) return fail(event.id, EACCES);
    return fail(event.id, shm::means_absent(error) ? ECONNRESET : error);
  }
  end.listener.reset();
  end.facing = std::move(flow).value();
  static_cast<void>(agent_.confirm(event.id, {}, os::coarse_now()));
  if (send_error_ != 0) return fail(event.id, ECONNRESET);
  establish(event.id, end, event.more);
}

// Its source is that of the message which is being taken.
void MailboxConnections::establish(cm::ConnectionId id, ConnectionEnd& end,
                                   std::span<const std::byte> data) {
  end.stage = EndStage::kEstablished;
  end.source = arrived_from_;
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
  ConnectionEnd* const end = find(id);
  if (end == nullptr) return;
  link::ConnectionUser& user = *end->user;
  finish(id);
  user.ended();
}

bool MailboxConnections::is_gone(const ConnectionEnd& end) {
  if (end.facing != nullptr) return end.facing->check_peer(*this) != link::PeerState::kAlive;
  return end.listener != nullptr && end.listener->peer_state() != link::PeerState::kAlive;
}

// The errno of an attempt that nothing will answer, or 0. The program of a listener may take its
// time.
int MailboxConnections::verdict(const ConnectionEnd& end, os::Time now) {
  if (end.stage == EndStage::kEstablished) return 0;
  if (is_gone(end)) return end.stage == EndStage::kAsked ? ECONNREFUSED : ECONNABORTED;
  if (now < end.deadline || end.was_read()) return 0;
  return end.stage == EndStage::kAsked ? ETIMEDOUT : ECONNABORTED;
}

// A listener has closed in good order: an endpoint that was opened for the request before may still
// accept it.
bool MailboxConnections::may_come(ConnectionEnd& end, os::Time now) {
  if (!end.was_read() || end.listener->peer_state() != link::PeerState::kLeft) return false;
  end.listener.reset();
  end.deadline = now + options_.request_timeout;
  return true;
}

bool MailboxConnections::send_again() {
  return mads_.send_again([this](cm::ConnectionId id, const shm::MadPlace& place) {
    if (ConnectionEnd* const end = find(id)) end->req = place;
  });
}

// The listener of a REQ that it has read may close without a sign to a sleeper.
os::Time MailboxConnections::due() const {
  os::Time due = os::Time::max();
  if (ends_.size() == by_source_.size()) return due;
  for (const auto& [id, end] : ends_) {
    if (end.stage == EndStage::kEstablished) continue;
    due = std::min(due, end.was_read() ? os::coarse_now() + kSleepersLook : end.deadline);
  }
  return due;
}

void MailboxConnections::withdraw_abandoned(os::Time now) {
  std::erase_if(undecided_, [&](const auto& each) { return !agent_.is_undecided(each.id); });
  for (auto looks = std::min(kLooksAtOnce, undecided_.size()); looks != 0; --looks) {
    if (now - undecided_.front().looked_at < kBetweenLooks) return;
    UndecidedRequest request = undecided_.front();
    undecided_.pop_front();
    request.looked_at = now;
    if (!mads_.is_gone(request.from)) {
      undecided_.push_back(request);
      continue;
    }
    agent_.abandon(request.id, now);
    listener_->withdrawn(request.id);
  }
}

void MailboxConnections::check(bool at_once, const std::function<bool()>& take_in) {
  const os::Time now = os::coarse_now();
  if (port_.link_by(cm::Carrier::kPackets) == nullptr) agent_.advance(now);  // else that does
  send_again();
  if (!at_once && now < next_check_) return;
  next_check_ = now + kBetweenChecks;
  withdraw_abandoned(now);
  mads_.close_idle();
  std::vector<cm::ConnectionId> vain;
  for (auto& [id, end] : ends_) {
    if (verdict(end, now) != 0) vain.push_back(id);
  }
  if (vain.empty() || !take_in()) return;
  for (const cm::ConnectionId id : vain) {
    ConnectionEnd* const end = find(id);
    const int error = end != nullptr ? verdict(*end, now) : 0;
    if (error == 0 || may_come(*end, now)) continue;
    if (error == ETIMEDOUT && !mads_.drop(id)) agent_.disconnect(id, {}, now);
    fail(id, error);
  }
}

}  // namespace weft::device
