// SPDX-License-Identifier: BSD-2-Clause
// Can the owner of a mailbox harm its senders by writing arbitrary bytes into it?
//
// The owner is a process of its own, as its memory is what senders write into: it makes the
// mailbox, then only exists. This process plays the owner's part in the shared words and is the
// victim, too.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <map>
#include <vector>

#include "link_shm/mailbox.h"
#include "link_shm/names.h"
#include "link_shm/outbox.h"
#include "memory/region_table.h"
#include "os/loopback_support.h"
#include "playground.h"

namespace weft::fuzz {
namespace {

using os::loopback;

constexpr std::uint32_t kPlayed = 6;  // rendezvous that the owner plays with

// What lives as long as the fuzzer: the owner and its files.
class World {
 public:
  static constexpr std::size_t kArena = 256 * 1024;

  World() {
    arena_ = static_cast<std::byte*>(
        ::mmap(nullptr, kArena, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    start_owner();
    file_ = os::SharedFile::open(shm::mailbox_path(directory_.path(), loopback(7001))).value();
    header_ = std::move(file_->map(0, 4096)).value();
    std::memcpy(intact_, header_.base(), sizeof intact_);
    require(file_->reserve(shm::slot_at(0), shm::kSlotBytes).ok(), "no memory");
    slot_ = std::move(file_->map(shm::slot_at(0), shm::kSlotBytes)).value();
  }
  ~World() {
    ::kill(owner_, SIGKILL);
    ::waitpid(owner_, nullptr, 0);
  }
  const std::string& directory() const { return directory_.path(); }
  std::byte* arena() const { return arena_; }
  shm::MailboxHeader& header() { return *header_.at<shm::MailboxHeader>(0); }
  shm::SlotHeader& slot() { return *slot_.at<shm::SlotHeader>(0); }
  shm::Rendezvous& rendezvous(std::uint32_t i) {
    return slot_.at<shm::Rendezvous>(
        shm::kMessageGeometry
            .rendezvous_records_at())[i % shm::kMessageGeometry.rendezvous_records];
  }
  // As if nothing had ever been written.
  void clean() {
    std::memcpy(header_.base(), intact_, sizeof intact_);
    std::memset(slot_.base() + shm::kCellsAt, 0, shm::kMessageGeometry.cells * sizeof(shm::Cell));
    slot().state = shm::SlotState::kFree;
  }

 private:
  void start_owner() {
    int ready[2];
    require(::pipe(ready) == 0, "no pipe");
    owner_ = ::fork();
    if (owner_ == 0) be_owner(ready[1]);
    char word = 0;
    require(::read(ready[0], &word, 1) == 1, "the owner did not start");
    ::close(ready[0]);
    ::close(ready[1]);
  }
  [[noreturn]] void be_owner(int ready) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    auto table = std::move(memory::RegionTable::create(directory_.path())).value();
    constexpr Access kAll = Access::kRemoteRead | Access::kRemoteWrite;
    const auto base = reinterpret_cast<std::uint64_t>(arena_);
    const bool added = table->add({DomainId{1}, kAll, base, 8192, 0, false, RegionKey{1}}).ok() &&
                       table->add({DomainId{1}, kAll, 4096, 8192, 0, false, RegionKey{2}}).ok();
    auto box =
        shm::Mailbox::create({directory_.path(), loopback(7001), DomainId{1}, table->name(), 3});
    if (!added || !box || ::write(ready, "x", 1) != 1) ::_exit(1);
    for (;;) ::pause();
  }

  Directory directory_;
  std::byte* arena_ = nullptr;
  pid_t owner_ = -1;
  os::SharedFilePtr file_;
  os::Mapping header_;
  os::Mapping slot_;
  std::byte intact_[4096];
};

// Every pending message ends exactly once.
struct Ledger final : link::FlowSink {
  std::map<std::uintptr_t, int> pending;
  void ended(void* cookie, int, int) override {
    require(pending.erase(reinterpret_cast<std::uintptr_t>(cookie)) == 1,
            "a message ended that was not pending");
  }
};

class Game {
 public:
  Game(Input& input, World& world, Buffers& buffers)
      : input_(input), world_(world), buffers_(buffers) {
    world_.clean();
    auto opened = shm::Outbox::open(sender_, loopback(7001));
    require(opened.ok(), "the owner is not there");
    box_ = std::move(opened).value();
  }
  ~Game() {
    seem_over();
    if (input_.byte() % 2 == 0) {
      box_->give_up(ledger_);
      require(ledger_.pending.empty(), "giving up left a message pending");
    }
    box_.reset();
    if (lent_ != nullptr) buffers_.take_back(lent_);
  }
  void play() {
    for (int step = 0; step < 200 && !input_.empty(); ++step) move(input_.byte());
  }

 private:
  // A sender waits a while for an owner that seems to be copying.
  void seem_over() {
    for (std::uint32_t i = 0; i < kPlayed; ++i) world_.rendezvous(i).copied = 0x80000000;
  }
  void move(std::uint8_t choice) {
    switch (choice % 13) {
      case 0:
      case 1:
      case 2:
        return send();
      case 3:
      case 4:
      case 5:
        return write_rendezvous();
      case 6:
        return write_slot();
      case 7:
        return write_header();
      case 8:
        return access();
      case 12:
        return atomic();
      case 9:
        box_->set_asleep(input_.byte() % 2 != 0);
        static_cast<void>(box_->ready());
        return;
      case 10:
        if (input_.byte() < 64 && box_->check_peer(ledger_) != link::PeerState::kAlive) {
          require(ledger_.pending.empty(), "a lost peer left a message pending");
        }
        return;
      default:
        box_->progress(ledger_);
    }
  }
  void send() {
    static std::byte message[100'000];
    const std::size_t sizes[] = {0, 8, 40, 41, 5000, 8193, 16'384, 40'000, 100'000};
    const std::size_t size = sizes[input_.byte() % std::size(sizes)];
    const LocalRange sges[] = {{message, size / 3}, {message + size / 3, size - size / 3}};
    const std::uint8_t flags = input_.byte();
    link::SendRequest request;
    request.until_delivered = (flags & 1) != 0;
    request.must_copy = (flags & 2) != 0 && size <= shm::kMaxEager;
    request.sges = sges;
    request.length = size;
    request.cookie = reinterpret_cast<void*>(++cookie_);
    ledger_.pending.emplace(cookie_, 0);
    const auto outcome = box_->send(request);
    if (outcome.state != link::Outcome::State::kPending) ledger_.pending.erase(cookie_);
  }
  LocalRange any_sge() {
    const auto arena = reinterpret_cast<std::uint64_t>(world_.arena());
    const std::uint64_t address =
        input_.number({arena + 1, arena + World::kArena, 4096, 1ull << 47});
    return {reinterpret_cast<void*>(address), input_.number({1, 20'000, 100'000, 1ull << 63})};
  }
  void write_rendezvous() {
    shm::Rendezvous& written = world_.rendezvous(input_.below(kPlayed));
    const std::uint8_t which = input_.byte();
    if (which & 1) written.claims = input_.number({1, 3, 1ull << 32, 3ull << 32});
    if (which & 2) written.copied = static_cast<std::uint32_t>(input_.number({1, 4, 1ull << 32}));
    if (which & 4) written.fault = static_cast<std::int32_t>(input_.number({1, 5000}));
    if (which & 8) written.sges[0].source = any_sge();
    written.matched_length = input_.number({1, 8193, 40'000, 100'000, 1ull << 47});
    written.target_count = static_cast<std::uint16_t>(input_.number({1, 2, link::kMaxLinkSges}));
    for (auto& pair : written.sges) pair.target = any_sge();
    written.state = static_cast<shm::RendezvousState>(which & 128 ? input_.byte() % 5 : 2);
  }
  void write_slot() {
    switch (input_.byte() % 4) {
      case 0:
        world_.slot().cells_consumed = input_.number({1, shm::kMessageGeometry.cells, 1ull << 63});
        return;
      case 1:
        world_.slot().bulk_consumed =
            input_.number({1, shm::kMessageGeometry.bulk_bytes, 1ull << 63});
        return;
      case 2:
        world_.slot().attention = static_cast<shm::Attention>(input_.byte() % 4);
        return;
      default:
        world_.slot().state = static_cast<shm::SlotState>(input_.byte() % 4);
    }
  }
  void write_header() {
    shm::MailboxHeader& header = world_.header();
    switch (input_.byte() % 5) {
      case 0:
        header.asleep = input_.byte() % 2;
        header.waker = os::WakerName{'\0', 'f', 'u', 'z', 'z'};
        return;
      case 1:
        header.counts_access = input_.byte();
        return;
      case 2:
        header.domain = input_.byte();
        return;
      case 3:
        return input_.bytes(header.table, input_.byte() % sizeof header.table);
      default:
        header.magic = input_.word();
    }
  }
  void access() {
    if (lent_ == nullptr) lent_ = buffers_.lend();
    const bool write = input_.byte() % 2 == 0;
    const RemoteRange remote[] = {{input_.number({1, 4096, 8192}), input_.byte(), RegionKey{1}},
                                  {input_.byte(), input_.byte(), RegionKey{input_.byte() % 4u}}};
    const std::size_t count = 1 + input_.byte() % 2;
    link::AccessRequest request;
    request.length = remote[0].length + (count == 2 ? remote[1].length : 0);
    const LocalRange local{lent_->base, request.length};
    request.write = write;
    request.has_data = input_.byte() % 2 == 0;
    request.local = {&local, 1};
    request.remote = {remote, count};
    box_->access(request);
  }

  void atomic() {
    if (lent_ == nullptr) lent_ = buffers_.lend();
    static constexpr AtomicAction kActions[] = {
        {AtomicForm::kBase, AtomicOp::kSum, AtomicType::kUint8},
        {AtomicForm::kFetch, AtomicOp::kBitXor, AtomicType::kUint64},
        {AtomicForm::kFetch, AtomicOp::kRead, AtomicType::kInt16},
        {AtomicForm::kCompare, AtomicOp::kMaskedSwap, AtomicType::kUint32},
        {AtomicForm::kCompare, AtomicOp::kSwapIfLess, AtomicType::kFloat}};
    link::AtomicRequest request;
    request.action = kActions[input_.byte() % std::size(kActions)];
    const std::size_t size = size_of(request.action.type);
    const RemoteRange remote[] = {
        {input_.number({1, 4096, 8192}), (1 + input_.byte()) * size, RegionKey{1}},
        {input_.byte(), input_.byte() * size, RegionKey{input_.byte() % 4u}}};
    request.remote = {remote, 1u + input_.byte() % 2};
    for (const RemoteRange& range : request.remote) request.length += range.length;
    const LocalRange local{lent_->base, request.length};
    static std::byte other[kMaxAtomicBytes];
    const LocalRange operand{other, request.length};
    request.operand = request.compare = {&operand, 1};
    request.result = {&local, 1};
    request.has_data = input_.byte() % 2 == 0;
    box_->atomic(request);
  }

  Input& input_;
  World& world_;
  Buffers& buffers_;
  os::Waker waker_ = std::move(os::Waker::create()).value();
  shm::Sender sender_{world_.directory(), loopback(7101), &waker_, 8192};
  Ledger ledger_;
  LocalRange* lent_ = nullptr;
  std::uintptr_t cookie_ = 0;
  std::unique_ptr<shm::Outbox> box_;
};

}  // namespace
}  // namespace weft::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static weft::fuzz::World world;
  const auto buffers = std::make_unique<weft::fuzz::Buffers>();
  weft::fuzz::Input input(data, size);
  {
    const auto game = std::make_unique<weft::fuzz::Game>(input, world, *buffers);
    game->play();
  }
  buffers->check();
  return 0;
}
