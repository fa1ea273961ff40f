// SPDX-License-Identifier: BSD-2-Clause
// Can a sender that writes anything into its slot harm the owner of the mailbox?
#include <deque>
#include <vector>

#include "link_shm/mailbox.h"
#include "link_shm/names.h"
#include "link_shm/outbox.h"
#include "memory/region_table.h"
#include "os/loopback_support.h"
#include "playground.h"

namespace weft::fuzz {
namespace {

using link::MessageOperation;
using os::loopback;

constexpr std::uint32_t kPlayed = 8;  // rendezvous that the sender plays with

// The victim's user: takes some messages, keeps others waiting.
class Owner final : public link::InboxSink {
 public:
  explicit Owner(Buffers& buffers) : buffers_(buffers) {}
  shm::Mailbox* box = nullptr;
  unsigned taste = 0;  // says what becomes of the next messages

  void source_opened(std::uint32_t source, const os::SocketAddress&) override {
    require(source < shm::kSlots && !open_[source], "a source was opened twice");
    open_[source] = true;
  }
  void source_closed(std::uint32_t source, bool) override {
    require(open_[source], "a source was closed that was not open");
    open_[source] = false;
    std::erase_if(offers_, [source](const auto& a) { return a.offer.source == source; });
    std::erase_if(acks_, [source](const auto& a) { return a.source == source; });
  }
  void arrived(const link::Arrival& arrival) override {
    require(open_[arrival.source], "a message came from a source that is not open");
    require(arrival.operation >= MessageOperation::kMessage &&
                arrival.operation <= MessageOperation::kDatagram,
            "an unknown operation arrived");
    if (arrival.payload == nullptr) {
      offers_.push_back(arrival);
      if (taste % 2 == 0) accept();
      return;
    }
    require(arrival.length <= shm::kMaxEager, "a payload is longer than any can be");
    for (std::uint64_t i = 0; i < arrival.length; ++i) {
      sum_ = sum_ + static_cast<unsigned>(arrival.payload[i]);
    }
    if (!arrival.wants_ack) return;
    if (taste % 3 == 0) {
      box->acknowledge(arrival.offer);
    } else {
      acks_.push_back(arrival.offer);
    }
  }
  void accessed(std::uint32_t source, Access, std::span<const RegionKey> regions) override {
    require(open_[source], "a source that is not open accessed something");
    require(regions.size() <= memory::kHazards, "more regions than one access can have");
    for (const RegionKey key : regions) sum_ = sum_ + static_cast<unsigned>(key.v);
  }
  void take_datagram(std::span<const std::byte> datagram) {
    require(datagram.size() <= shm::kLongestMad, "a datagram is longer than any can be");
    for (const std::byte each : datagram) sum_ = sum_ + static_cast<unsigned>(each);
  }
  void received(void* cookie, int) override {
    buffers_.take_back(static_cast<LocalRange*>(cookie));
  }
  void accept() {
    if (offers_.empty()) return;
    const link::Arrival arrival = offers_.front();
    LocalRange* lent = buffers_.lend();
    if (lent == nullptr) return;
    offers_.pop_front();
    const std::size_t room = taste % 5 == 0 ? 100 : lent->length;
    const auto length = std::min<std::uint64_t>(arrival.length, room);
    auto* base = static_cast<std::byte*>(lent->base);
    const LocalRange sges[] = {{base, room / 3}, {base + room / 3, room - room / 3}};
    box->accept(*this, arrival.offer, sges, length, lent);
  }
  void acknowledge() {
    if (acks_.empty()) return;
    box->acknowledge(acks_.front());
    acks_.pop_front();
  }

 private:
  Buffers& buffers_;
  std::deque<link::Arrival> offers_;
  std::deque<link::Offer> acks_;
  bool open_[shm::kSlots] = {};
  volatile unsigned sum_ = 0;
};

// What the victim has registered: one buffer that may be written, and one that may not.
class Regions {
 public:
  Regions(memory::RegionTable& table, Buffers& buffers) : table_(table), buffers_(buffers) {
    open_ = buffers.lend();
    const LocalRange* closed = buffers.lend();
    writable_ = add(*open_, Access::kRemoteRead | Access::kRemoteWrite, RegionKey{10});
    readable_ = add(*closed, Access::kRemoteRead, RegionKey{11});
    buffers.take_back(const_cast<LocalRange*>(closed));
  }
  ~Regions() {
    require(table_.remove(writable_).ok() && table_.remove(readable_).ok(),
            "a region stays in use");
    buffers_.take_back(open_);
  }
  Regions(const Regions&) = delete;
  Regions& operator=(const Regions&) = delete;

 private:
  memory::Registration add(const LocalRange& range, Access access, RegionKey key) {
    return table_
        .add({DomainId{1}, access, reinterpret_cast<std::uint64_t>(range.base), range.length, 0,
              false, key})
        .value();
  }

  memory::RegionTable& table_;
  Buffers& buffers_;
  LocalRange* open_;
  memory::Registration writable_;
  memory::Registration readable_;
};

class Game {
 public:
  Game(Input& input, const std::string& directory, memory::RegionTable& table, Buffers& buffers)
      : input_(input), directory_(directory), owner_(buffers), regions_(table, buffers) {
    shm::MailboxOptions options{
        directory,   loopback(7001),
        DomainId{1}, table.name(),
        0,           memory::RegionTableView::open(directory, table.name()).value()};
    options.on_mad = [this](const os::SocketAddress&, std::span<const std::byte> datagram) {
      owner_.take_datagram(datagram);
    };
    box_ = std::move(shm::Mailbox::create(options)).value();
    owner_.box = box_.get();
    file_ = os::SharedFile::open(shm::mailbox_path(directory, loopback(7001))).value();
    header_ = std::move(file_->map(0, shm::kSlotsAt)).value();
    enter();
    const std::uint64_t at = shm::slot_at(0);
    const std::uint64_t bulk_at = shm::kMessageGeometry.bulk_at();
    const std::uint64_t begin =
        shm::kMessageGeometry.rendezvous_records_at() + kPlayed * sizeof(shm::Rendezvous);
    require(file_->reserve(at, begin).ok() &&
                file_->reserve(at + bulk_at, shm::kSlotBytes - bulk_at).ok(),
            "no memory");
    slot_ = std::move(file_->map(shm::slot_at(0), shm::kSlotBytes)).value();
  }
  // The owner waits a while for a sender that seems to be copying: let it seem over.
  ~Game() {
    for (std::uint32_t i = 0; i < kPlayed; ++i) rendezvous(i).copied = 0x80000000;
  }
  void play() {
    for (int step = 0; step < 200 && !input_.empty(); ++step) move(input_.byte());
  }

 private:
  shm::SlotHeader& head() { return *slot_.at<shm::SlotHeader>(0); }
  shm::Rendezvous& rendezvous(std::uint32_t i) {
    return slot_.at<shm::Rendezvous>(
        shm::kMessageGeometry
            .rendezvous_records_at())[i % shm::kMessageGeometry.rendezvous_records];
  }
  shm::Cell& cell(std::uint64_t i) {
    return slot_.at<shm::Cell>(shm::kCellsAt)[i % shm::kMessageGeometry.cells];
  }

  void enter() {
    auto opened = shm::Outbox::open(sender_, loopback(7001));
    if (opened) outbox_ = std::move(opened).value();
  }
  void move(std::uint8_t choice) {
    switch (choice % 15) {
      case 0:
      case 1:
      case 2:
        return write_cell();
      case 3:
      case 4:
        return write_rendezvous();
      case 5:
        return write_header();
      case 6:
        return input_.bytes(slot_.base() + shm::kMessageGeometry.bulk_at() + input_.below(1000),
                            64);
      case 7:
        return ring();
      case 8:
        return box_->check_sources(owner_);
      case 9:
        return owner_.accept();
      case 10:
        return owner_.acknowledge();
      case 11:
        box_->fall_asleep();
        return input_.byte() % 2 == 0 ? box_->wake_up() : void();
      case 12:
        return come_or_go();
      case 13:
        return write_datagram();
      default:
        owner_.taste = input_.byte();
        box_->poll(owner_);
    }
  }
  void write_datagram() {
    const auto number = static_cast<std::uint32_t>(input_.below(shm::kMads));
    shm::MadCell& written = header_.at<shm::MadCell>(shm::kMadsAt)[number];
    written.order = input_.byte();
    written.length = static_cast<std::uint32_t>(input_.number({256, shm::kLongestMad, 1u << 31}));
    written.address_length = input_.byte();
    input_.bytes(reinterpret_cast<std::byte*>(written.address), 8);
    written.turn = input_.byte();
    shm::mark_mads(*header_.at<shm::MailboxHeader>(0), std::uint64_t{1} << number);
  }
  void write_cell() {
    shm::Cell& written = cell(next_);
    const std::uint8_t choice = input_.byte();
    shm::CellWord word{static_cast<std::uint32_t>(next_ / shm::kMessageGeometry.cells + 1),
                       static_cast<MessageOperation>(1 + input_.byte() % 7),
                       static_cast<shm::CellKind>(choice % 5), input_.byte(), input_.byte()};
    if (choice >= 204 && choice < 212) word.kind = shm::CellKind::kRefused;
    if (choice >= 212 && choice < 220) word.kind = shm::CellKind::kAccessed;
    if (choice >= 240) word = shm::CellWord::unpack(input_.word());
    if (word.kind == shm::CellKind::kBulk) {
      written.bulk = {
          input_.number({shm::kMessageGeometry.bulk_bytes, 64}),
          static_cast<std::uint32_t>(
              input_.number({1, shm::kMessageGeometry.bulk_bytes, 1ull << 32})),
          static_cast<std::uint32_t>(input_.number({1, shm::kMaxEager, 1ull << 32})),
          static_cast<std::uint32_t>(input_.number({1, shm::kMessageGeometry.rendezvous_records})),
          0};
    } else if (word.kind == shm::CellKind::kOffered) {
      written.offered = {input_.number({1, 20'000, 100'000, 1ull << 47}),
                         static_cast<std::uint32_t>(
                             input_.number({1, 8, shm::kMessageGeometry.rendezvous_records})),
                         0};
    } else if (word.kind == shm::CellKind::kAssisted) {
      written.tag = input_.number({1, Buffers::kRoom - 32, Buffers::kRoom, 1ull << 63});
      written.data = 10 + input_.byte() % 3;
      written.assisted.length = static_cast<std::uint32_t>(
          input_.number({1, shm::kAssistedBytesInCell, shm::kAssistedBytes, 1ull << 31}));
      written.assisted.withdrawn = input_.byte() % 4 == 0;
    } else if (word.kind == shm::CellKind::kAtomicAssisted) {
      write_atomic(written);
      word.operation = static_cast<MessageOperation>(3 + input_.byte() % 3);
    } else if (word.kind == shm::CellKind::kRefused) {
      written.tag = input_.number({1, Buffers::kRoom - 32, Buffers::kRoom, 1ull << 63});
      written.data = 10 + input_.byte() % 3;
      written.refused.length = input_.number({1, 64, Buffers::kRoom, 1ull << 63});
      written.refused.need = static_cast<Access>(input_.byte());
      written.refused.element = static_cast<std::uint32_t>(input_.number({1, 8, 1ull << 32}));
    } else if (word.kind == shm::CellKind::kAccessed) {
      written.accessed.access = static_cast<Access>(input_.byte());
      written.accessed.count = static_cast<std::uint32_t>(input_.number({9, 1ull << 32}));
      input_.bytes(written.accessed.keys, sizeof written.accessed.keys);
    } else {
      word.inline_length %= choice < 200 ? shm::kInlineBytes + 1 : 256;
      if (choice < 200) word.flags &= shm::kHasData;
    }
    written.word = word.pack();
    if (choice < 220) ++next_;
    ring_slot(0);
  }
  void write_atomic(shm::Cell& written) {
    written.tag = input_.number({1, Buffers::kRoom - 32, Buffers::kRoom, 1ull << 63});
    written.data = 10 + input_.byte() % 3;
    written.atomic.length =
        static_cast<std::uint32_t>(input_.number({9, 17, shm::kAtomicAssistedBytes, 1ull << 31}));
    written.atomic.withdrawn = input_.byte() % 4 == 0;
    written.atomic.form = static_cast<AtomicForm>(input_.byte() % 4);
    written.atomic.op = static_cast<AtomicOp>(input_.byte() % (kAtomicOps + 1));
    written.atomic.type = static_cast<AtomicType>(input_.byte() % (kAtomicTypes + 1));
    input_.bytes(written.atomic.bytes, sizeof written.atomic.bytes);
  }
  void write_rendezvous() {
    shm::Rendezvous& written = rendezvous(input_.below(kPlayed));
    written.source_count = static_cast<std::uint16_t>(input_.number({1, link::kMaxLinkSges}));
    for (auto& pair : written.sges) pair.source = any_sge();
    const std::uint8_t which = input_.byte();
    if (which & 1) written.claims = input_.number({1, 3, 1ull << 32, 3ull << 32});
    if (which & 2) written.copied = static_cast<std::uint32_t>(input_.number({1, 4, 1ull << 32}));
    if (which & 4) written.fault = static_cast<std::int32_t>(input_.number({1, 5000}));
    if (which & 8) written.matched_length = input_.number({1, 20'000, 1ull << 47});
    if (which & 16) written.sges[0].target = any_sge();
    written.state = static_cast<shm::RendezvousState>(which & 32 ? input_.byte() % 5 : 1);
  }
  LocalRange any_sge() {
    static std::byte source[100'000];
    const std::uint64_t address =
        input_.number({reinterpret_cast<std::uint64_t>(source) + 1,
                       reinterpret_cast<std::uint64_t>(source) + 90'000, 4096, 1ull << 47});
    return {reinterpret_cast<void*>(address), input_.number({1, 5000, 50'000, 1ull << 63})};
  }
  void write_header() {
    switch (input_.byte() % 7) {
      case 0:
        head().state = static_cast<shm::SlotState>(input_.byte() % 4);
        return ring_slot(0);
      case 1:
        return input_.bytes(head().address, sizeof head().address);
      case 2:
        head().probe.address = input_.word();
        return;
      case 3:
        head().sender_asleep = input_.byte() % 2;
        head().waker = os::WakerName{'\0', 'f', 'u', 'z', 'z'};
        return;
      case 4:
        head().attention = static_cast<shm::Attention>(input_.byte() % 4);
        return;
      case 5:
        head().geometry = {1u << input_.byte() % 32, 1u << input_.byte() % 32,
                           static_cast<std::uint32_t>(input_.number({4096, 4097, 1u << 31}))};
        return;
      default:
        head().cells_consumed = input_.word();
    }
  }
  void ring_slot(std::uint32_t number) {
    auto& mailbox = *header_.at<shm::MailboxHeader>(0);
    mailbox.woken[number / 64] |= std::uint64_t{1} << (number % 64);
    mailbox.summary |= std::uint64_t{1} << (number / 64);
  }
  void ring() {
    auto& mailbox = *header_.at<shm::MailboxHeader>(0);
    switch (input_.byte() % 4) {
      case 0:
        mailbox.woken[input_.below(64)] = input_.word();
        return;
      case 1:
        mailbox.summary = input_.word();
        return;
      case 2:
        mailbox.asleep = input_.byte();
        return;
      default:
        ring_slot(input_.below(shm::kSlots));
    }
  }
  void come_or_go() {
    if (outbox_ == nullptr) {
      enter();
    } else {
      outbox_.reset();
    }
    next_ = 0;
  }

  Input& input_;
  const std::string& directory_;
  os::Waker waker_ = std::move(os::Waker::create()).value();
  shm::Sender sender_{directory_, loopback(7101), &waker_, 8192};
  Owner owner_;
  Regions regions_;
  os::SharedFilePtr file_;
  os::Mapping header_;
  os::Mapping slot_;
  std::unique_ptr<shm::Outbox> outbox_;
  std::unique_ptr<shm::Mailbox> box_;
  std::uint64_t next_ = 0;
};

}  // namespace
}  // namespace weft::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static weft::fuzz::Directory directory;
  static const auto table = std::move(weft::memory::RegionTable::create(directory.path())).value();
  const auto buffers = std::make_unique<weft::fuzz::Buffers>();
  weft::fuzz::Input input(data, size);
  {
    const auto game = std::make_unique<weft::fuzz::Game>(input, directory.path(), *table, *buffers);
    game->play();
  }
  buffers->check();
  return 0;
}
