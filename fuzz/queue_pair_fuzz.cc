// SPDX-License-Identifier: BSD-2-Clause
// Can a peer that writes anything into shared memory harm a queue pair, or another one beside it?
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "hostile_owner.h"
#include "link_shm/peer_slot.h"
#include "playground.h"
#include "queue_end.h"
#include "second_writer.h"

namespace weft::fuzz {
namespace {

constexpr std::uint64_t kCells = 128;
constexpr std::uint32_t kBulk = 16 * 1024;
constexpr std::size_t kSlotWords = offsetof(shm::SlotHeader, assisted);
// Bits of a message's flags, and the lengths of what is no payload: the length of a WRITE, the note
// of a refusal, and that of buffers.
constexpr unsigned kUnreliable = 64;
constexpr unsigned kInPlace = 128;
constexpr std::uint8_t kLengths[] = {4, 24, shm::kInlineBytes, 0};
// A message, its parts, and those whose bytes are the sender's still, twice each; a WRITE; a
// refusal.
constexpr std::uint8_t kUsualFlags[] = {3, 3, 1, 0, 2, 131, 131, 129, 128, 130, 3 | 4 | 16, 3 | 32};
constexpr QpType kTypes[] = {QpType::kRc, QpType::kUc, QpType::kUd, QpType::kXrcSend,
                             QpType::kXrcReceive};

os::SocketAddress number_address(std::uint32_t number) {
  return os::SocketAddress::of_host(AF_INET, &in6addr_any, static_cast<std::uint16_t>(number));
}

class World {
 public:
  World() {
    for (std::size_t i = 0; i < std::size(kTypes); ++i) {
      victims_[i] = std::make_unique<QueueEnd>(device_, port_, kTypes[i]);
    }
    a_.connect(b_.qpn(), 7);
    b_.connect(a_.qpn(), 7);
    exchange();
  }
  HostileOwner& owner() { return owner_; }
  SecondWriter& writer() { return writer_; }
  QueueEnd& victim(std::uint8_t choice) { return *victims_[choice % std::size(kTypes)]; }
  QueueEnd& beside() { return b_; }
  std::uint32_t peer_of_beside() const { return a_.qpn(); }
  // The couple beside the victim works as ever.
  void exchange() {
    const unsigned before = a_.successes() + b_.successes();
    b_.post_receive(64);
    queue::QpSendRequest write;
    write.opcode = queue::CompletionOpcode::kWrite;
    write.work.kind = work::WorkKind::kWrite;
    write.work.address = reinterpret_cast<std::uint64_t>(b_.place(0));
    write.work.key = b_.key();
    {
      queue::QueuePair::Posting posting(a_.pair());
      a_.post(posting, {}, 64);
      a_.post(posting, write, 64);
    }
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    while (!a_.idle() || !b_.idle()) {
      a_.poll();
      b_.poll();
      require(std::chrono::steady_clock::now() < end, "the couple beside the victim hangs");
    }
    require(a_.successes() + b_.successes() == before + 3, "the couple beside the victim failed");
    b_.check();
  }

 private:
  Directory base_;
  HostileOwner owner_{base_.path()};
  SecondWriter writer_;
  std::shared_ptr<device::Device> device_ = device::Device::get(base_.path()).value();
  std::shared_ptr<queue::QpPort> port_ = queue::QpPort::open(device_, true).value();
  QueueEnd a_{device_, port_, QpType::kRc};
  QueueEnd b_{device_, port_, QpType::kRc};
  std::unique_ptr<QueueEnd> victims_[std::size(kTypes)];
};

class Game {
 public:
  Game(Input& input, World& world)
      : input_(input), world_(world), owner_(world.owner()), victim_(world.victim(input.byte())) {
    owner_.begin(victim_.qpn());
    victim_.connect(HostileOwner::kQpn, static_cast<std::uint8_t>(input_.byte() % 8));
    claim();
  }
  void play() {
    for (int step = 0; step < 100 && !input_.empty(); ++step) move(input_.byte());
    victim_.finish();
    slot_.reset();
    world_.exchange();
  }

 private:
  void move(std::uint8_t choice) {
    switch (choice % 13) {
      case 12:
        return write_meanwhile();
      case 0:
      case 1:
      case 2:
        return write_cell();
      case 3:
        return write_own_slot();
      case 4:
        return victim_.post_receive(input_.number({1, 64, QueueEnd::kRoom}) %
                                    (QueueEnd::kRoom + 1));
      case 5:
      case 6:
        return post();
      case 7:
        return answer();
      case 8:
        return write_region();
      case 9:
        return come_or_go();
      default:
        victim_.poll();
    }
  }
  void claim() {
    auto claimed = shm::PeerSlot::claim(sender_, number_address(victim_.qpn() >> 8));
    if (!claimed) return;
    slot_ = std::move(claimed).value();
    require(slot_->memory().back_bulk().ok(), "no memory");
    next_ = 0;
  }
  void come_or_go() { slot_ == nullptr ? claim() : slot_.reset(); }
  // Words change while the victim reads them. One time in each game, as it takes longest.
  void write_meanwhile() {
    if (std::exchange(meanwhile_, true)) return;
    std::vector<SecondWriter::Change> changes;
    for (unsigned left = 1 + input_.byte() % 4U; left != 0; --left) changes.push_back(any_change());
    world_.writer().start(std::move(changes));
    for (int step = 0; step < 12; ++step) {
      move(input_.byte() % 8);  // all that leaves the slot mapped
      victim_.poll();
    }
    world_.writer().stop();
  }
  SecondWriter::Change any_change() {
    const std::uint8_t bit = input_.byte();
    const std::uint64_t bits = bit < 192 ? std::uint64_t{1} << bit % 64 : input_.word() | 1;
    const std::uint8_t choice = input_.byte();
    if (choice < 128 && slot_ != nullptr) {
      shm::Cell& cell = slot_->memory().cells()[(next_ + choice % 8) % kCells];
      std::uint64_t* const word = any_word(&cell, sizeof cell);
      if (word != reinterpret_cast<std::uint64_t*>(&cell)) return {word, bits};
      return {word, bits << 32 | 1ull << 40};  // with its lap it is read
    }
    switch (choice % 7) {
      case 0:
      case 1:
        if (slot_ != nullptr) return {any_word(&slot_->header(), kSlotWords), bits};
        [[fallthrough]];
      case 2:
      case 3:
        return {any_word(&owner_.slot(choice % 2), kSlotWords), bits};
      case 4:
        return {any_word(&owner_.header(), sizeof(shm::MailboxHeader)), bits};
      case 5:
        return {any_word(&owner_.table(), sizeof(memory::TableHeader)), bits};
      default:
        return {any_word(&owner_.region(input_.byte() % 3), sizeof(memory::RegionSlot)), bits};
    }
  }
  std::uint64_t* any_word(void* object, std::size_t bytes) {
    return static_cast<std::uint64_t*>(object) + input_.byte() % (bytes / sizeof(std::uint64_t));
  }
  void write_cell() {
    if (slot_ == nullptr) return;
    shm::Cell& cell = slot_->memory().cells()[next_ % kCells];
    const std::uint8_t choice = input_.byte();
    const bool other = choice % 16 == 15;
    const std::uint64_t to = other ? world_.beside().qpn() : victim_.qpn();
    const std::uint64_t from = other ? world_.peer_of_beside() : HostileOwner::kQpn;
    cell.tag = choice < 240 ? to << 32 | from : input_.word();
    const bool unreliable = victim_.type() == QpType::kUc || victim_.type() == QpType::kUd;
    std::uint8_t flags = input_.byte();
    if (flags < 192) flags = kUsualFlags[flags % std::size(kUsualFlags)];
    const std::uint64_t immediate = input_.byte();
    const std::uint32_t shared = input_.byte() % 3U;
    cell.data =
        immediate << 32 | shared << 8 | (flags & ~kUnreliable) | (unreliable ? kUnreliable : 0U);
    shm::CellWord word{static_cast<std::uint32_t>(next_ / kCells + 1),
                       link::MessageOperation::kQueuePair,
                       static_cast<shm::CellKind>(input_.byte() % 2), 0, input_.byte()};
    if (choice < 200) word.inline_length %= shm::kInlineBytes + 1;
    if (choice < 100) word.inline_length = kLengths[choice % std::size(kLengths)];
    input_.bytes(cell.bytes, word.inline_length % (shm::kInlineBytes + 1));
    if ((flags & kInPlace) != 0 && input_.byte() < 200) write_buffers(cell);
    if (victim_.type() == QpType::kUd) {
      std::memcpy(cell.bytes, &QueueEnd::kQueueKey, sizeof QueueEnd::kQueueKey);
    }
    if (word.kind == shm::CellKind::kBulk) {
      cell.bulk = {input_.number({64, kBulk}),
                   static_cast<std::uint32_t>(input_.number({1, kBulk, 1ull << 32})),
                   static_cast<std::uint32_t>(input_.number({1, kBulk / 8, 1ull << 32})), 0, 0};
    }
    if (choice >= 248) word = shm::CellWord::unpack(input_.word());
    cell.word.store(word.pack());
    ++next_;
    slot_->ring();
  }
  // The payload is in memory of the owner.
  void write_buffers(shm::Cell& cell) {
    std::uint64_t words[shm::kInlineBytes / sizeof(std::uint64_t)];
    words[0] = input_.number({1, std::size(words) / 2, 1ull << 32});
    for (std::size_t i = 1; i + 1 < std::size(words); i += 2) {
      words[i] = owner_.arena() + input_.below(HostileOwner::kArena / 2);
      words[i + 1] = input_.number({64, QueueEnd::kRoom, HostileOwner::kArena}) |
                     std::uint64_t{HostileOwner::kKey} << 32;
    }
    std::memcpy(cell.bytes, words, sizeof words);
  }
  void write_own_slot() {
    if (slot_ == nullptr) return;
    write_words(slot_->header());
    slot_->ring();
  }
  void write_words(shm::SlotHeader& slot) {
    switch (input_.byte() % 6) {
      case 0:
        slot.state = static_cast<shm::SlotState>(input_.byte() % 4);
        return;
      case 1:
        return write_answer(slot);
      case 2:
        slot.attention = static_cast<shm::Attention>(input_.byte() % 4);
        return;
      case 3:
        slot.cells_consumed = input_.number({1, kCells, 1ull << 63});
        return;
      case 4:
        slot.bulk_consumed = input_.number({1, kBulk, 1ull << 63});
        return;
      default:
        slot.geometry = {1U << input_.byte() % 32, 1U << input_.byte() % 32,
                         static_cast<std::uint32_t>(input_.number({4096, kBulk, 1u << 31}))};
    }
  }
  void write_answer(shm::SlotHeader& slot) {
    if (input_.byte() >= 200) {
      slot.answer = input_.word();
      return;
    }
    const std::uint64_t position = input_.byte() % 4;
    slot.answer = shm::answer_word(position, static_cast<std::uint16_t>(input_.below(0x900)));
  }
  void answer() {
    if (input_.byte() < 230) return write_words(owner_.slot(input_.byte() % 2));
    shm::MailboxHeader& header = owner_.header();
    header.closed = input_.byte() % 2;
    header.asleep = input_.byte() % 2;
    header.first_free = static_cast<std::uint32_t>(input_.number({1, 2}));
  }
  void write_region() {
    memory::RegionSlot& slot = owner_.region(input_.byte() % 3);
    switch (input_.byte() % 8) {
      case 0:
        slot.sequence = input_.byte() % 4;
        return;
      case 1:
        slot.access = static_cast<std::uint32_t>(input_.word());
        return;
      case 2:
        slot.base = input_.number({owner_.arena(), 4096, 1ull << 47});
        return;
      case 3:
        slot.length = input_.number({1, HostileOwner::kArena, 1ull << 63});
        return;
      case 4:
        slot.segment = input_.number({1, HostileOwner::kArena, 1ull << 63});
        return;
      case 5:
        slot.next = static_cast<std::uint32_t>(input_.number({1, 3, 1ull << 32}));
        return;
      case 6:
        slot.shift = input_.byte();
        return;
      default:
        owner_.table().index_word = static_cast<std::uint32_t>(input_.word());
    }
  }
  // A list of requests; most have one.
  void post() {
    queue::QueuePair::Posting posting(victim_.pair());
    const std::uint8_t choice = input_.byte();
    for (unsigned left = choice < 128 ? 1 : choice % 5U; left != 0; --left) post_one(posting);
  }
  void post_one(queue::QueuePair::Posting& posting) {
    queue::QpSendRequest request;
    work::Work& work = request.work;
    work.kind = static_cast<work::WorkKind>(input_.byte() % 5);
    if (victim_.type() == QpType::kUd) work.kind = work::WorkKind::kSend;
    constexpr queue::CompletionOpcode kOpcodes[] = {
        queue::CompletionOpcode::kSend, queue::CompletionOpcode::kWrite,
        queue::CompletionOpcode::kRead, queue::CompletionOpcode::kCompareSwap,
        queue::CompletionOpcode::kFetchAdd};
    request.opcode = kOpcodes[static_cast<unsigned>(work.kind)];
    request.destination = HostileOwner::kQpn;
    work.has_immediate = work.kind <= work::WorkKind::kWrite && input_.byte() % 4 == 0;
    work.shared_receive = 1;
    work.address = owner_.arena() + input_.below(128) * 8;
    work.key = HostileOwner::kKey;
    const std::size_t most =
        work.kind == work::WorkKind::kRead ? QueueEnd::kRoom : QueueEnd::kSource;
    std::size_t length = input_.number({1, 104, 4096, most}) % (most + 1);
    if (work.kind >= work::WorkKind::kCompareSwap) length = 8;
    if (victim_.type() == QpType::kUd) length %= 4097;
    victim_.post(posting, request, length);
  }

  Input& input_;
  World& world_;
  HostileOwner& owner_;
  QueueEnd& victim_;
  os::Waker waker_ = std::move(os::Waker::create()).value();
  shm::Sender sender_ = [this] {
    shm::Sender sender{owner_.directory(), number_address(HostileOwner::kPort), &waker_};
    sender.service = link::Service::kQueuePairs;
    sender.geometry = {kCells, 1, kBulk};
    return sender;
  }();
  std::unique_ptr<shm::PeerSlot> slot_;
  std::uint64_t next_ = 0;
  bool meanwhile_ = false;
};

}  // namespace
}  // namespace weft::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static weft::fuzz::World world;
  weft::fuzz::Input input(data, size);
  weft::fuzz::Game(input, world).play();
  return 0;
}
