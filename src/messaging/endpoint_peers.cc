// SPDX-License-Identifier: BSD-2-Clause
// How does an endpoint come by its peers, and how does it notice that they are gone?
#include <algorithm>

#include "messaging/endpoint.h"

namespace weft::messaging {
namespace {

// Of a few peers the kernel is asked so often that it costs less than 1 % of the time; of many not
// more seldom than this.
constexpr auto kCheckPeer = std::chrono::milliseconds(1);
constexpr auto kCheckOften = std::chrono::milliseconds(10);
constexpr auto kCheckSeldom = std::chrono::milliseconds(200);
constexpr unsigned kPollsPerClock = 16;

}  // namespace

link::Flow* Endpoint::connect(PeerIndex index, int& error) {
  if (setup_.connection != nullptr) {
    // The way may be broken before the end of the connection is told.
    error = peers_.empty() && ended_ == 0 ? ENOTCONN : ESHUTDOWN;
    return nullptr;
  }
  follow_addresses();
  if (setup_.service == link::Service::kDatagram) return look_for(index, error);
  const auto entry = setup_.addresses->find(index);
  if (!entry) {
    error = EINVAL;
    return nullptr;
  }
  if (index >= peers_.size()) peers_.resize(index + 1);
  Peer& peer = peers_[index];
  if (peer.flow != nullptr) return peer.flow.get();
  const Status found = open_way(peer, *entry);
  if (found.ok()) return peer.flow.get();
  // Programs may start in any order: a peer that is not there may still come.
  // EPERM may mean that its process is ending, and another one may take its address.
  const int reason = found.error().code;
  const bool may_come = reason == ENOENT || reason == EPERM;
  error = reason == ENOENT ? EHOSTUNREACH : reason;
  if (!may_come) return nullptr;
  if (peer.died && peer.stamp == entry->stamp) {
    error = EHOSTUNREACH;
    return nullptr;
  }
  const os::Time now = os::coarse_now();
  if (peer.give_up == os::Time{} || peer.stamp != entry->stamp) {
    peer.give_up = now + setup_.options->connect_timeout;
    peer.stamp = entry->stamp;
  }
  if (now < peer.give_up) {
    error = EAGAIN;
    progress_locked();
  } else {
    peer.give_up = {};
  }
  return nullptr;
}

// The way to the endpoint that has taken the address of a peer that has gone; null without one.
link::Flow* Endpoint::find_successor(PeerIndex index) {
  if (setup_.connection != nullptr) return nullptr;
  const auto entry = setup_.addresses->find(index);
  if (!entry) return nullptr;
  return open_way(peers_[index], *entry).ok() ? peers_[index].flow.get() : nullptr;
}

Status Endpoint::open_way(Peer& peer, const AddressVector::Entry& entry) {
  auto flow = port_->connect(entry.address);
  if (!flow) return flow.error();
  peer.flow = std::move(flow).value();
  if (peer.died && peer.stamp == entry.stamp) peer.flow->doubt();
  peer.stamp = entry.stamp;
  peer.give_up = {};
  if (sleepers_ > 0) watch_processes();
  return {};
}

// Numbers that were taken out of the address vector, or mean another address now, lose their flow.
void Endpoint::follow_addresses() {
  const std::uint64_t version = setup_.addresses->version();
  if (version == addresses_version_) return;
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    if (peers_[i].flow == nullptr) continue;
    const auto entry = setup_.addresses->find(i);
    if (!entry || entry->stamp != peers_[i].stamp) lose(peers_[i]);
  }
  addresses_version_ = version;
}

void Endpoint::lose(Peer& peer) {
  if (peer.flow == nullptr) return;
  peer.flow->give_up(*this);
  std::erase(busy_, peer.flow.get());
  peer.flow.reset();
}

void Endpoint::lose(PeerIndex number, link::PeerState state) {
  lose(peers_[number]);
  if (state != link::PeerState::kDied) return;
  peers_[number].died = true;
  // It may have died before it sent anything that would have made it a source.
  const PeerIndex index = setup_.addresses->canonical(number);
  if (index != kNoPeer) died_.push_back(index);
  setup_.device->sweep_up();
}

void Endpoint::check_peers() {
  if (closing_) return;
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    if (peers_[i].flow == nullptr) continue;
    const link::PeerState state = peers_[i].flow->check_peer(*this);
    if (state == link::PeerState::kAlive) {
      if (peers_[i].flow->reached()) peers_[i].died = false;
      continue;
    }
    lose(i, state);
  }
  for (const auto& group : groups_) {
    if (group != nullptr && group->flow != nullptr) group->flow->check_peer(*this);
  }
  port_->inbox().check_sources(*this);
  settle_deaths();
  if (setup_.connection != nullptr) check_connection();
}

os::Time::duration Endpoint::check_interval() const {
  const std::size_t peers = peers_.size() + sources_.size();
  return std::clamp<os::Time::duration>(peers * kCheckPeer, kCheckOften, kCheckSeldom);
}

// True every now and then: looking at the clock at every poll would be half of its cost.
bool Endpoint::tick() {
  const unsigned polls = polls_.load(std::memory_order_relaxed) + 1;
  polls_.store(polls, std::memory_order_relaxed);
  if (polls % kPollsPerClock != 0) return false;
  const os::Time now = os::coarse_now();
  if (now < next_check_) return false;
  next_check_ = now + check_interval();
  return true;
}

void Endpoint::progress_locked() {
  if (closing_) [[unlikely]]
    return;
  if (parting_is_due_) [[unlikely]] {
    parting_is_due_ = false;
    setup_.connection->parting_is_due();
  }
  port_->inbox().poll(*this);
  for (std::size_t i = 0; i < busy_.size();) {
    link::Flow* flow = busy_[i];
    flow->progress(*this);
    if (flow->busy()) {
      ++i;
    } else {
      flow->set_asleep(false);
      std::erase(busy_, flow);
    }
  }
  if (awaits_peer_ && peer_reached()) [[unlikely]]
    setup_.connection->reached();
  if (tick()) check_peers();
  if (!died_.empty()) [[unlikely]]
    settle_deaths();
}

void Endpoint::progress() {
  const std::lock_guard guard(lock_.inner());
  progress_locked();
}

// A sleeping thread does not poll the clock: the end of a peer's process has to wake it.
void Endpoint::watch_processes() {
  if (setup_.service == link::Service::kDatagram) return;  // nothing of it waits for a peer
  std::vector<pid_t> processes = port_->source_processes();
  for (const Peer& peer : peers_) {
    if (peer.flow != nullptr) processes.push_back(peer.flow->process());
  }
  if (facing_ != nullptr) processes.push_back(facing_->process());
  for (const pid_t process : processes) {
    if (process <= 0 || watched_.contains(process)) continue;
    os::Fd fd = os::watch_process(process);
    if (fd.valid() && wake_set_.add(fd.get()).ok()) watched_.emplace(process, std::move(fd));
  }
}

bool Endpoint::fall_asleep() {
  const Section section(lock_);
  ++sleepers_;
  bool ended = false;
  for (auto entry = watched_.begin(); entry != watched_.end();) {
    if (os::wait_readable(entry->second.get(), std::chrono::milliseconds(0))) {
      wake_set_.remove(entry->second.get());
      entry = watched_.erase(entry);
      ended = true;
    } else {
      ++entry;
    }
  }
  // A sleeper polls too seldom for tick().
  const os::Time now = os::coarse_now();
  if (ended || now >= next_check_) {
    next_check_ = now + check_interval();
    check_peers();
  }
  watch_processes();
  for (link::Flow* flow : busy_) flow->set_asleep(true);
  const bool quiet = port_->inbox().fall_asleep() && !ended && !parting_is_due_ &&
                     std::none_of(busy_.begin(), busy_.end(),
                                  [](const link::Flow* flow) { return flow->ready(); });
  // Going to sleep has silenced the bell for threads that slept before.
  if (!quiet && sleepers_ > 1) port_->inbox().ring();
  return quiet;
}

void Endpoint::wake_up() {
  const Section section(lock_);
  if (--sleepers_ > 0) return;
  port_->inbox().wake_up();
  for (link::Flow* flow : busy_) flow->set_asleep(false);
}

Endpoint::Endpoint(EndpointSetup setup)
    : setup_(std::move(setup)),
      own_queue_(setup_.receives == nullptr
                     ? std::make_unique<ReceiveQueue>(setup_.locking, setup_.receive_room)
                     : nullptr),
      queue_(own_queue_ != nullptr ? *own_queue_ : *setup_.receives),
      lock_(queue_.lock_),
      peer_mask_(setup_.connection == nullptr ? ~PeerIndex{0} : 0) {
  // The one peer of a connected endpoint has no entry there.
  if (setup_.connection != nullptr) addresses_version_ = setup_.addresses->version();
}

Result<std::unique_ptr<Endpoint>> Endpoint::open(EndpointSetup setup) {
  device::PortSetup wanted;
  wanted.domain = setup.domain;
  wanted.served = setup.served;
  wanted.name = setup.name;
  wanted.count_remote_reads = setup.count_remote_reads;
  wanted.count_remote_writes = setup.count_remote_writes;
  wanted.service = setup.service;
  wanted.options = setup.options;
  if (setup.met_over_network != nullptr) wanted.met_over_network = *setup.met_over_network;
  std::unique_ptr<Endpoint> endpoint(new Endpoint(std::move(setup)));
  auto port = device::Port::open(endpoint->setup_.device, endpoint->setup_.place, wanted);
  if (!port) return port.error();
  endpoint->port_ = std::move(port).value();
  auto set = os::EventSet::create();
  if (!set) return set.error();
  endpoint->wake_set_ = std::move(set).value();
  if (Status ok = endpoint->wake_set_.add(endpoint->port_->inbox().wake_fd()); !ok) {
    return ok.error();
  }
  if (Status ok = endpoint->join_queue(); !ok) return ok.error();
  return endpoint;
}

Endpoint::~Endpoint() {
  if (port_ != nullptr && !close()) {
    const ControlGuard guard(lock_);
    leave_queue();
  }
  // Flows first: they use the port.
  facing_.reset();
  peers_.clear();
  groups_.clear();
}

}  // namespace weft::messaging
