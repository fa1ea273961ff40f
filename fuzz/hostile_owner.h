// SPDX-License-Identifier: BSD-2-Clause
// Which process owns a mailbox of queue pairs and a region table whose words a fuzzer may write?
#pragma once

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "link_shm/mailbox.h"
#include "link_shm/names.h"
#include "memory/table_layout.h"
#include "os/runtime_dir.h"
#include "playground.h"

namespace weft::fuzz {

// A child process that owns both files and does nothing: the fuzzer maps them, and is the owner. It
// is made before the first thread.
class HostileOwner {
 public:
  static constexpr std::uint16_t kPort = 40'000;
  static constexpr std::uint32_t kQpn = kPort << 8 | 5;
  static constexpr std::uint32_t kDomain = 7;
  static constexpr std::uint32_t kKey = 77;
  static constexpr std::uint32_t kPlayedSlots = 4;
  static constexpr std::size_t kArena = 64 * 1024;

  explicit HostileOwner(const std::string& base)
      : directory_(os::runtime_directory(base).value()), arena_(kArena) {
    int ready[2];
    require(::pipe(ready) == 0, "no pipe");
    child_ = ::fork();
    require(child_ >= 0, "no process");
    if (child_ == 0) own(ready[1]);
    char word = 0;
    require(::read(ready[0], &word, 1) == 1, "the owner did not begin");
    ::close(ready[0]);
    ::close(ready[1]);
    mailbox_ = os::SharedFile::open(path()).value();
    const std::size_t bytes = shm::slot_at(kPlayedSlots);
    require(mailbox_->reserve(0, bytes).ok(), "no memory");
    words_ = std::move(mailbox_->map(0, bytes)).value();
    std::memcpy(header_, words_.base(), sizeof header_);
    table_file_ = os::SharedFile::open(directory_ + "/hostile").value();
    table_ = std::move(table_file_->map(0, memory::kTableSize)).value();
  }
  ~HostileOwner() {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }
  HostileOwner(const HostileOwner&) = delete;
  HostileOwner& operator=(const HostileOwner&) = delete;

  const std::string& directory() const { return directory_; }
  std::uint64_t arena() const { return reinterpret_cast<std::uint64_t>(arena_.data()); }
  shm::MailboxHeader& header() { return *words_.at<shm::MailboxHeader>(0); }
  shm::SlotHeader& slot(std::uint32_t i) { return *words_.at<shm::SlotHeader>(shm::slot_at(i)); }
  memory::TableHeader& table() { return *table_.at<memory::TableHeader>(0); }
  memory::RegionSlot& region(std::uint64_t number) {
    auto& found = table_.at<memory::RegionSlot>(memory::kSlotsAt)[number % memory::kMaxRegions];
    regions_.push_back(&found);
    return found;
  }
  void enter(DomainId domain, RegionKey key, std::uint32_t value) {
    auto word = memory::IndexWord::unpack(table().index_word.load());
    if (!word.valid()) word = {};
    const std::uint64_t at = memory::hash_key(domain, key) & (word.entries() - 1);
    entries_.push_back(&table_.at<std::atomic<std::uint32_t>>(word.at())[at]);
    entries_.back()->store(value);
  }

  // The words of an honest owner whose queue pair is connected to `peer`.
  void begin(std::uint32_t peer) {
    std::memcpy(words_.base(), header_, sizeof header_);
    for (std::uint32_t i = 0; i < kPlayedSlots; ++i) {
      std::memset(static_cast<void*>(&slot(i)), 0, sizeof(shm::SlotHeader));
    }
    for (auto* each : regions_) std::memset(static_cast<void*>(each), 0, sizeof *each);
    for (auto* each : entries_) each->store(0);
    regions_.clear();
    entries_.clear();
    table().users_end = 0;
    table().index_word = memory::IndexWord{}.pack();
    const std::uint64_t shared = std::uint64_t{1} << 32 | 1;
    add(0, kPairs, RegionKey{kQpn}, kDomain, 1, peer);
    add(1, DomainId{kDomain}, RegionKey{kKey}, arena(), kArena, 0);
    add(2, kPairs, RegionKey{shared}, kDomain, 1, 0);
  }

  static constexpr DomainId kPairs{~0U};

 private:
  std::string path() const {
    return shm::mailbox_path(directory_, os::SocketAddress::of_host(AF_INET, &in6addr_any, kPort),
                             link::Service::kQueuePairs);
  }
  [[noreturn]] void own(int ready) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    auto file = os::SharedFile::create(directory_ + "/hostile", memory::kTableSize).value();
    auto memory = std::move(file->map(0, memory::kTableSize)).value();
    auto& header = *memory.at<memory::TableHeader>(0);
    header.magic = memory::kTableMagic;
    header.version = memory::kTableVersion;
    require(file->publish().ok(), "the table has no name");
    shm::MailboxOptions options;
    options.directory = directory_;
    options.address = os::SocketAddress::of_host(AF_INET, &in6addr_any, kPort);
    options.table = "hostile";
    options.service = link::Service::kQueuePairs;
    const auto box = std::move(shm::Mailbox::create(options)).value();
    require(::write(ready, "", 1) == 1, "no reader");
    for (;;) ::pause();
  }
  void add(std::uint64_t number, DomainId domain, RegionKey key, std::uint64_t base,
           std::uint64_t length, std::uint32_t binding) {
    memory::RegionSlot& slot = region(number);
    const bool is_entry = domain.v == kPairs.v;
    constexpr Access kAll =
        kLocalRead | Access::kRemoteRead | Access::kRemoteWrite | Access::kRemoteAtomic;
    slot.access = static_cast<std::uint32_t>(kAll);
    slot.key = key.v;
    slot.domain = domain.v;
    slot.base = base;
    slot.length = slot.segment = length;
    slot.start = is_entry ? 0 : base;
    slot.binding = binding;
    slot.sequence = 2;
    enter(domain, key, static_cast<std::uint32_t>(number + 1));
  }

  const std::string directory_;
  std::vector<std::byte> arena_;
  pid_t child_ = -1;
  os::SharedFilePtr mailbox_;
  os::SharedFilePtr table_file_;
  os::Mapping words_;
  os::Mapping table_;
  std::byte header_[sizeof(shm::MailboxHeader)];
  std::vector<memory::RegionSlot*> regions_;
  std::vector<std::atomic<std::uint32_t>*> entries_;
};

}  // namespace weft::fuzz
