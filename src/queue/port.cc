// SPDX-License-Identifier: BSD-2-Clause
// How do queue pairs share sockets, a lock and a sleep?
#include "queue/port.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <utility>

#include "memory_inbox.h"
#include "os/at_fork.h"
#include "os/process_memory.h"
#include "os/runtime_dir.h"
#include "os/user_memory.h"
#include "roce/path.h"

namespace weft::queue {
namespace {

// QPNs from 0x800000 on are Weft's: `port << 8 | index`.
constexpr std::uint32_t kFirstPort = 32'768;
constexpr std::uint32_t kPorts = 32'768;
constexpr unsigned kTries = 1000;
constexpr unsigned kReadsAtOnce = 4;
// Polls in which a watched client waits for nothing before it is forgotten.
constexpr unsigned kIdleLooks = 256;
// Polls in succession that hand over messages without a look at the watched clients.
constexpr unsigned kPostponedLooks = 4;
// A program that polls looks far more often. Packets that are found after such a pause are late.
constexpr auto kPause = std::chrono::milliseconds(1);
// How long a process that exits tries to get the lock.
constexpr auto kFinishes = std::chrono::milliseconds(2);

Result<os::UdpSocket> bind(int family, std::uint16_t port) {
  return os::UdpSocket::bind(os::SocketAddress::of_host(family, &in6addr_any, port),
                             roce::kReliableSocket);
}

// The sockets of a number; one alone on a host without IPv6, or without IPv4.
Result<std::vector<os::UdpSocket>> bind_number(std::uint16_t port) {
  std::vector<os::UdpSocket> sockets;
  Error last{EAFNOSUPPORT, "this host has neither IPv4 nor IPv6"};
  for (const int family : {AF_INET, AF_INET6}) {
    auto socket = bind(family, port);
    if (socket) {
      sockets.push_back(std::move(socket).value());
    } else {
      last = socket.error();
      if (last.code != EAFNOSUPPORT && last.code != EADDRNOTAVAIL) return last;
    }
  }
  if (sockets.empty()) return last;
  return sockets;
}

// Those of any free number.
Result<std::vector<os::UdpSocket>> bind_any_number() {
  Error last{EADDRINUSE, "no UDP port from 32768 on is free"};
  for (unsigned i = 0; i < kTries; ++i) {
    auto sockets =
        bind_number(static_cast<std::uint16_t>(kFirstPort + os::random_number() % kPorts));
    if (sockets || sockets.error().code != EADDRINUSE) return sockets;
  }
  return last;
}

// Ports send a last time when the process exits: acknowledgements may wait for requests that the
// program does not post any more (ReplyForecast).
class LivePorts {
 public:
  void add(QpPort& port);
  void remove(QpPort& port) {
    const std::lock_guard guard(mutex_);
    std::erase(ports_, &port);
  }

 private:
  // A signal handler that exits may have interrupted a thread that opens a port.
  void finish() {
    const std::unique_lock guard(mutex_, std::try_to_lock);
    if (!guard.owns_lock()) return;
    for (QpPort* const port : ports_) port->finish();
  }

  std::mutex mutex_;
  os::AtFork at_fork_{6, mutex_};
  std::vector<QpPort*> ports_;
};

// Outlives every static destructor.
LivePorts& live_ports = *new LivePorts;

void LivePorts::add(QpPort& port) {
  const std::lock_guard guard(mutex_);
  [[maybe_unused]] static const int asked = std::atexit([] { live_ports.finish(); });
  ports_.push_back(&port);
}

}  // namespace

QpPort::QpPort(std::shared_ptr<device::Device> device, os::WakeSet wake)
    : device_(std::move(device)), wake_(std::move(wake)) {}

Result<std::shared_ptr<QpPort>> QpPort::create(std::shared_ptr<device::Device> device,
                                               const char* stats) {
  auto wake = os::WakeSet::create();
  if (!wake) return wake.error();
  std::shared_ptr<QpPort> port(new QpPort(std::move(device), std::move(wake).value()));
  port->stats_ = port->device_->stats().take(stats);
  auto thread = device::ProgressThread::get();
  if (!thread) return thread.error();
  port->thread_ = std::move(thread).value();
  return port;
}

void QpPort::begin() {
  thread_->attach(*this);
  live_ports.add(*this);
}

Result<std::shared_ptr<QpPort>> QpPort::open(std::shared_ptr<device::Device> device, bool shares) {
  auto created = create(std::move(device), "queue pairs");
  if (!created) return created.error();
  const std::shared_ptr<QpPort> port = std::move(created).value();
  port->shares_ = shares && port->can_share();
  for (auto* guard : {&port->reader_, &port->writer_}) {
    auto attached = memory::AccessGuard::attach(port->device_->regions_of_users());
    if (!attached) return attached.error();
    *guard = std::move(attached).value();
  }
  {
    const MutexLock guard(port->lock_);
    if (Status ok = port->open_number(); !ok) return ok.error();
  }
  port->begin();
  return port;
}

Result<std::shared_ptr<QpPort>> QpPort::open_for_managers(std::shared_ptr<device::Device> device) {
  auto created = create(std::move(device), "connection managers");
  if (!created) return created;
  const std::shared_ptr<QpPort>& port = created.value();
  {
    const MutexLock guard(port->lock_);
    port->count_packet_users(1);
  }
  port->begin();
  return created;
}

QpPort::~QpPort() {
  live_ports.remove(*this);
  if (thread_ != nullptr && !origin_.inherited()) thread_->detach(*this);
}

Status QpPort::open_number() {
  auto sockets = bind_any_number();
  if (!sockets) return sockets.error();
  if (Status ok = add_number(std::move(sockets).value()); !ok) return ok;
  inboxes_.push_back(shares_ ? open_inbox(numbers_.back()->address().port()) : nullptr);
  return {};
}

bool QpPort::can_share() const {
  if (device_->directory().empty()) return false;
  static const char* const why = os::why_no_process_memory();
  if (why != nullptr) device_->warn_of_network(Error{EPERM, why});
  return why == nullptr;
}

// Without one the queue pairs of the number use packets.
std::unique_ptr<MemoryInbox> QpPort::open_inbox(std::uint16_t port) {
  auto inbox = MemoryInbox::open({device_, *this, wake_}, port);
  if (inbox) return std::move(inbox).value();
  device_->warn_of_network(inbox.error());
  return nullptr;
}

Status QpPort::add_number(std::vector<os::UdpSocket> sockets) {
  roce::PacketPortOptions options;
  options.capture = device_->capture() != nullptr ? &device_->capture()->network() : nullptr;
  options.stats = stats_.get();
  auto packets = roce::PacketPort::open(std::move(sockets.front()), wake_, options);
  if (!packets) return packets.error();
  if (sockets.size() == 2) {
    if (Status ok = packets.value()->add_family(std::move(sockets.back())); !ok) return ok;
  }
  numbers_.push_back(std::move(packets).value());
  return {};
}

Result<QpPort::Attachment> QpPort::open_manager(PortClient& manager,
                                                const os::SocketAddress& address,
                                                bool both_families) {
  if (Status ok = thread_->start(); !ok) return ok.error();
  Result<std::vector<os::UdpSocket>> sockets = std::vector<os::UdpSocket>{};
  if (both_families) {
    sockets = address.port() != 0 ? bind_number(address.port()) : bind_any_number();
  } else if (auto socket = os::UdpSocket::bind(address, roce::kReliableSocket)) {
    sockets.value().push_back(std::move(socket).value());
  } else {
    return socket.error();
  }
  if (!sockets) return sockets.error();
  if (Status ok = add_number(std::move(sockets).value()); !ok) return ok.error();
  roce::PacketPort& packets = *numbers_.back();
  const auto qpn = packets.attach(manager, roce::QpnUse::kManager, Time::clock::now());
  if (!qpn) {
    numbers_.pop_back();
    return qpn.error();
  }
  return Attachment{qpn.value(), &packets};
}

void QpPort::close_manager(PortClient& manager, const Attachment& attachment) {
  detach(manager, attachment);
  std::erase_if(numbers_, [&](const auto& each) { return each.get() == attachment.packets; });
}

std::size_t QpPort::receive_buffer() const { return numbers_.front()->receive_buffer(); }

Result<QpPort::Attachment> QpPort::attach(PortClient& client) {
  // A target of one-sided accesses need not poll.
  if (Status ok = thread_->start(); !ok) return ok.error();
  const Time now = Time::clock::now();
  const auto attach_to = [&](std::size_t number) WEFT_REQUIRES(lock_) -> Result<Attachment> {
    const auto qpn = numbers_[number]->attach(client, roce::QpnUse::kQueuePair, now);
    if (!qpn) return qpn.error();
    MemoryInbox* const memory = inboxes_[number].get();
    if (memory != nullptr) memory->attach(qpn.value(), client);
    return Attachment{qpn.value(), numbers_[number].get(), memory};
  };
  for (std::size_t i = 0; i < numbers_.size(); ++i) {
    auto attached = attach_to(i);
    if (attached || attached.error().code != ENOBUFS) return attached;
  }
  if (Status ok = open_number(); !ok) return ok.error();
  return attach_to(numbers_.size() - 1);
}

void QpPort::detach(PortClient& client, const Attachment& attachment) {
  attachment.packets->detach(attachment.qpn, Time::clock::now());
  if (attachment.memory != nullptr) attachment.memory->detach(attachment.qpn);
  std::erase(touched_, &client);
  std::erase(active_, &client);
  std::erase(watched_, &client);
  std::ranges::replace(visited_, &client, nullptr);
  const MutexLock guard(news_lock_);
  std::erase_if(news_, [&](const News& each) { return each.client == &client; });
}

void QpPort::touch(PortClient& client) {
  if (std::exchange(client.touched_, true)) return;
  touched_.push_back(&client);
}

void QpPort::look_at(PortClient& client, Time due) {
  if (due == Time::max()) return;
  due_ = std::min(due_, due);
  if (std::exchange(client.active_, true)) return;
  active_.push_back(&client);
}

void QpPort::plan(PortClient& client, Time due) {
  look_at(client, due);
  if (sleepers_ != 0 && due < wakes_at_.load()) wake_sleepers_at(due);
}

void QpPort::announce(PortClient& client, Time due) {
  {
    const MutexLock guard(news_lock_);
    news_.push_back({&client, due, false});
    has_news_.store(true);
  }
  if (due >= wakes_at_.load()) return;
  const MutexLock guard(lock_);
  if (sleepers_ != 0) wake_sleepers_at(due);
}

void QpPort::watch(PortClient& client) {
  const MutexLock guard(news_lock_);
  news_.push_back({&client, Time::max(), true});
  has_news_.store(true);
}

void QpPort::take_news() {
  if (!has_news_.load()) return;
  const MutexLock guard(news_lock_);
  has_news_.store(false);
  for (const News& each : news_) {
    look_at(*each.client, each.due);
    if (!each.watch) continue;
    each.client->idle_looks_ = 0;
    watched_.push_back(each.client);
  }
  news_.clear();
}

void QpPort::settle_touched() {
  for (std::size_t i = 0; i < touched_.size(); ++i) {
    PortClient& client = *touched_[i];
    client.touched_ = false;
    look_at(client, client.settle(now_));
  }
  touched_.clear();
}

void QpPort::look_at_active() {
  due_ = Time::max();
  visited_.swap(active_);
  for (std::size_t i = 0; i < visited_.size(); ++i) {
    PortClient* const client = visited_[i];
    if (client == nullptr) continue;
    client->active_ = false;
    Time due = client->due();
    if (due <= now_) {
      client->tick(now_);
      if (visited_[i] == nullptr) continue;  // it has detached itself
      due = client->settle(now_);
    }
    look_at(*client, due);
  }
  visited_.clear();
}

bool QpPort::time_to_look() const {
  return packet_users_ != 0 || now_ >= looks_at_ ||
         now_ < looks_often_until_.load(std::memory_order_relaxed);
}

unsigned QpPort::take_packets(Time before) {
  if (!time_to_look()) return 0;
  looks_at_ = now_ + kSeldom;
  unsigned taken = 0;
  for (const auto& number : numbers_) {
    // A program that polls seldom looks at quiet sockets, too, until it has found something.
    if (now_ - before > kOften) number->attend();
    taken += number->poll(~0U, kReadsAtOnce);
  }
  if (taken != 0) expect_packets(now_);
  return taken;
}

unsigned QpPort::take_messages() {
  unsigned taken = 0;
  for (const auto& inbox : inboxes_) {
    if (inbox != nullptr) taken += inbox->poll();
  }
  return taken;
}

// True when something has arrived.
bool QpPort::take_arrivals() {
  const Time before = std::exchange(now_, clock_.now());
  const Time polled_before = polled_at_.load(std::memory_order_relaxed);
  polled_at_.store(now_, std::memory_order_relaxed);
  const unsigned taken = take_packets(before) + take_messages();
  if (taken == 0) return false;
  taken_.fetch_add(taken, std::memory_order_relaxed);
  if (now_ - std::max(before, polled_before) > kPause) {
    late_.fetch_add(taken, std::memory_order_relaxed);
  }
  if (now_ - polled_before > kOften) unpolled_.fetch_add(taken, std::memory_order_relaxed);
  return true;
}

// Those with news are settled; after a while clients are forgotten that wait for nothing.
void QpPort::touch_watched(bool all) {
  for (std::size_t i = 0; i < watched_.size();) {
    PortClient& client = *watched_[i];
    const Glance found = client.glance();
    if (found == Glance::kIdle && ++client.idle_looks_ >= kIdleLooks && client.ends_watch()) {
      watched_[i] = watched_.back();
      watched_.pop_back();
      continue;
    }
    if (found != Glance::kIdle) client.idle_looks_ = 0;
    if (found == Glance::kNews || all) touch(client);
    ++i;
  }
}

// Peers that end tell of it by their locks only.
void QpPort::check_peers() {
  checks_at_ = now_ + kCheck;
  touch_watched(true);
  if (now_ < checks_sources_at_) return;
  checks_sources_at_ = now_ + kCheckSources;
  for (const auto& inbox : inboxes_) {
    if (inbox != nullptr) inbox->check_sources();
  }
}

void QpPort::progress() {
  os::keep_faults_unblocked();
  // Two threads that poll at once may miss a count of each other.
  polls_.store(polls_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  if (origin_.inherited()) return;
  if (!lock_.try_lock()) return;
  const MutexLock guard(lock_, std::adopt_lock);
  const bool arrived = take_arrivals();
  take_news();
  // The program waits for the messages; it polls again for the ends of its own work.
  const bool postpones = arrived && ++postponed_ < kPostponedLooks;
  if (!postpones) postponed_ = 0;
  if (now_ >= checks_at_) [[unlikely]] {
    check_peers();
  } else if (!postpones) {
    touch_watched(false);
  }
  settle_touched();
  if (due_ <= now_) look_at_active();
  if (sleepers_ != 0 && due_ < wakes_at_.load()) wake_sleepers_at(due_);
}

// A thread that goes on sleeping beside one that polls learns what that has put off.
void QpPort::wake_sleepers_at(Time due) {
  wakes_at_.store(due);
  const Time now = Time::clock::now();
  wake_.wake_within(due <= now ? Time::duration(0) : due - now);
}

void QpPort::finish() {
  if (origin_.inherited()) return;
  const Time end = Time::clock::now() + kFinishes;
  while (!lock_.try_lock()) {
    if (Time::clock::now() >= end) return;
    std::this_thread::yield();
  }
  const MutexLock guard(lock_, std::adopt_lock);
  for (PortClient* const client : active_) client->finish();
}

// The sleepers are counted before the news are taken, and announce() looks for sleepers after its
// news: one of the two sees the other.
bool QpPort::fall_asleep() {
  const MutexLock guard(lock_);
  if (origin_.inherited()) return true;
  ++sleepers_;
  wakes_at_.store(Time::max());
  bool quiet = true;
  for (const auto& number : numbers_) quiet = number->fall_asleep() && quiet;
  for (const auto& inbox : inboxes_) {
    if (inbox != nullptr) quiet = inbox->fall_asleep() && quiet;
  }
  take_news();
  now_ = Time::clock::now();
  // They say that they sleep, and look once more.
  touch_watched(true);
  settle_touched();
  if (due_ <= now_) look_at_active();
  const Time due = watched_.empty() ? due_ : std::min(due_, checks_at_);
  if (!quiet || due <= now_) return false;
  wakes_at_.store(due);
  wake_.wake_at_latest(due == Time::max() ? os::Timer::kNever : due - now_);
  return true;
}

void QpPort::wake_up() {
  const MutexLock guard(lock_);
  if (origin_.inherited() || --sleepers_ != 0) return;
  wakes_at_.store(Time::min());
  now_ = Time::clock::now();  // packets that arrived during the sleep are not late
  looks_at_ = now_;
  for (const auto& number : numbers_) number->wake_up();
  for (const auto& inbox : inboxes_) {
    if (inbox != nullptr) inbox->wake_up();
  }
}

}  // namespace weft::queue
