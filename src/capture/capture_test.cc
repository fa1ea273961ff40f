// SPDX-License-Identifier: BSD-2-Clause
// Is a capture file valid at every moment, and private to its process?
#include "capture/capture.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <thread>

#include "test_support.h"

namespace weft::capture {
namespace {

using testing::Bytes;
using testing::Directory;
using testing::packets_in;

wire::Route route() {
  wire::Route made;
  made.source = {std::byte{127}, {}, {}, std::byte{1}};
  made.destination = {std::byte{127}, {}, {}, std::byte{2}};
  made.source_port = 50001;
  made.destination_port = 50002;
  return made;
}

// A datagram with that number.
void send(wire::Tap& tap, std::uint32_t number, std::size_t payload = 100) {
  wire::Packet packet;
  packet.opcode = opcode_of(wire::Transport::kUnreliableDatagram, wire::Operation::kSendOnly);
  packet.psn = Psn(number);
  Bytes bytes(wire::header_bytes(packet) + payload + wire::kIcrcBytes);
  wire::write_headers(packet, payload, bytes.data());
  const std::size_t covered = bytes.size() - wire::kIcrcBytes;
  wire::store_icrc(bytes.data() + covered, wire::icrc(route(), std::span(bytes).first(covered)));
  tap.packet(wire::CaptureDirection::kSent, route(), {}, bytes, {});
}

std::shared_ptr<Capture> open(const std::string& path, std::uint64_t limit = kDefaultLimit) {
  auto opened = Capture::open({path, limit});
  EXPECT_TRUE(opened) << opened.error().message;
  return opened ? std::move(opened).value() : nullptr;
}

// True when that holds in the end; a child exits well then.
int exit_status_of(const std::function<bool()>& body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body() ? 0 : 1);
  int status = -1;
  ::waitpid(child, &status, 0);
  return status;
}

bool holds_soon(const std::function<bool()>& what) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!what()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return true;
}

TEST(Capture, HoldsPacketsOfAllThreadsOnceItIsFlushed) {
  const Directory directory;
  const auto capture = open(directory.file("f"));
  std::vector<std::thread> threads;
  for (std::uint32_t i = 0; i < 4; ++i) {
    threads.emplace_back([&capture, i] {
      for (std::uint32_t n = 0; n < 1000; ++n) {
        send(i % 2 != 0 ? capture->host() : capture->network(), i * 1000 + n);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  capture->flush();
  const auto packets = packets_in(directory.file("f"));
  std::vector<bool> numbers(4000);
  for (const auto& each : packets) {
    EXPECT_TRUE(each.sound);
    numbers[each.packet.psn.value()] = true;
  }
  EXPECT_EQ(packets.size(), numbers.size());
  EXPECT_EQ(std::count(numbers.begin(), numbers.end(), true), 4000);
}

TEST(Capture, IsWrittenWithoutPollsAndWhenItsProcessIsKilled) {
  const Directory directory;
  const pid_t child = ::fork();
  if (child == 0) {
    const auto capture = open(directory.file("f"));
    send(capture->network(), 1);
    ::pause();
  }
  const auto there = [&] {
    return ::access(directory.file("f").c_str(), R_OK) == 0 &&
           std::filesystem::file_size(directory.file("f")) > 500;
  };
  EXPECT_TRUE(holds_soon(there));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(packets_in(directory.file("f")).size(), 1u);
}

TEST(Capture, WritesAtOnceWhenItIsFinished) {
  const Directory directory;
  const auto capture = open(directory.file("f"));
  send(capture->network(), 1);
  capture->finish();
  send(capture->network(), 2);
  EXPECT_EQ(packets_in(directory.file("f")).size(), 2u);
}

TEST(Capture, EndsBeforeItsLimitWithAWholePacket) {
  const Directory directory;
  const auto capture = open(directory.file("f"), 5000);
  ::testing::internal::CaptureStderr();
  for (std::uint32_t i = 0; i < 100; ++i) send(capture->network(), i);
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_FALSE(capture->takes());
  EXPECT_NE(said.find("WEFT_CAPTURE_LIMIT"), std::string::npos) << said;
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
  EXPECT_LE(std::filesystem::file_size(directory.file("f")), 5000u);
  EXPECT_GT(packets_in(directory.file("f")).size(), 10u);
}

// With a limit of the system in the place of a disk that is full.
TEST(Capture, WarnsOnceWhenItCannotGrowAndTheProgramGoesOn) {
  const Directory directory;
  const int status = exit_status_of([&] {
    const rlimit limit{20'000, 20'000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const auto capture = open(directory.file("f"));
    ::testing::internal::CaptureStderr();
    for (std::uint32_t i = 0; i < 1000; ++i) {
      send(capture->network(), i);
      if (i % 10 == 9) capture->flush();
    }
    const std::string said = ::testing::internal::GetCapturedStderr();
    return !capture->takes() && std::count(said.begin(), said.end(), '\n') == 1;
  });
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_GT(packets_in(directory.file("f")).size(), 50u);
}

TEST(Capture, OfEachProcessIsAFileOfItsOwn) {
  const Directory directory;
  const auto mine = open(directory.file("f"));
  const int status = exit_status_of([&] {
    const auto theirs = open(directory.file("f"));
    send(theirs->network(), 2);
    return theirs->path() == directory.file("f") + "." + std::to_string(::getpid());
  });
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  send(mine->network(), 1);
  mine->flush();
  ASSERT_EQ(packets_in(mine->path()).size(), 1u);
  EXPECT_EQ(packets_in(mine->path())[0].packet.psn, Psn(1));
  EXPECT_EQ(open(directory.file("%p.pcapng"))->path(),
            directory.file(std::to_string(::getpid()) + ".pcapng"));
}

TEST(Capture, IsNotTouchedByAForkedChild) {
  const Directory directory;
  auto capture = open(directory.file("f"));
  send(capture->network(), 1);
  const int status = exit_status_of([&] {
    send(capture->network(), 2);
    capture->flush();
    capture->finish();
    capture.reset();
    return true;
  });
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  send(capture->network(), 3);
  capture->flush();
  const auto packets = packets_in(directory.file("f"));
  ASSERT_EQ(packets.size(), 2u);
  EXPECT_EQ(packets[1].packet.psn, Psn(3));
}

TEST(CaptureOfProcess, GoesOnFromDeviceToDeviceAndIsAChildsOwn) {
  const Directory directory;
  const int status = exit_status_of([&] {
    ::setenv("WEFT_CAPTURE", directory.file("f").c_str(), 1);
    send(Capture::of_process()->network(), 1);
    send(Capture::of_process()->network(), 2);
    const auto inherited = Capture::of_process();
    inherited->finish();  // ThreadSanitizer follows no thread in a child of a process with threads
    const int child = exit_status_of([&] {
      const auto mine = Capture::of_process();
      send(mine->network(), 3);
      mine->flush();
      return mine != inherited && packets_in(mine->path()).size() == 1;
    });
    return child == 0 && packets_in(directory.file("f")).size() == 2;
  });
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST(CaptureOfProcess, IsNoneWhereItCannotBeWrittenOrIsNotWanted) {
  const Directory directory;
  const int status = exit_status_of([&] {
    ::setenv("WEFT_CAPTURE", directory.file("no/such").c_str(), 1);
    ::testing::internal::CaptureStderr();
    const bool none = Capture::of_process() == nullptr && Capture::of_process() == nullptr;
    const std::string said = ::testing::internal::GetCapturedStderr();
    return none && std::count(said.begin(), said.end(), '\n') == 1;
  });
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_EQ(exit_status_of([] {
              ::unsetenv("WEFT_CAPTURE");
              return Capture::of_process() == nullptr;
            }),
            0);
}

TEST(BytesOf, ReadsNumbersWithUnits) {
  EXPECT_EQ(bytes_of("4096"), 4096u);
  EXPECT_EQ(bytes_of("64K"), 65536u);
  EXPECT_EQ(bytes_of("3M"), 3u << 20);
  EXPECT_EQ(bytes_of("5G"), std::uint64_t{5} << 30);
  for (const char* wrong :
       {"", "0", "K", "-1", "5T", "5GB", "1.5G", "99999999999999999999", "18446744073709551615K"}) {
    EXPECT_FALSE(bytes_of(wrong)) << wrong;
  }
}

}  // namespace
}  // namespace weft::capture
