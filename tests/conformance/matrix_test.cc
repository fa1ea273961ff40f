// SPDX-License-Identifier: BSD-2-Clause
// Does every kind of transfer do what it should at any completion level, by any way to wait, in any
// size and with any number of peers?
//
// A hub exchanges a few operations with each of its spokes, both ways at once. Points are chosen so
// that every pair of values of the dimensions meets; WEFT_TEST_MATRIX=full takes all of them.
#include <gtest/gtest-spi.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <thread>

#include "support/delivery.h"
#include "support/peer_process.h"
#include "support/traffic.h"

namespace weft::conformance {
namespace {

// What a spoke is told, and the records that both sides exchange on the way.
struct Start {
  Point point;
  std::size_t number = 0;  // among the spokes
  Address hub;
};
struct Hello {
  bool ok = false;
  Address address;
};
struct Done {
  bool done = true;
};
struct Outcome {
  bool failed = false;
  std::array<char, 600> text{};
};

constexpr std::size_t kHub = 0;  // spokes are numbered from 1

void be_spoke(Channel& to_hub, const Start& start, const std::shared_ptr<Domain>& domain) {
  Station station(domain, start.point, 1);
  Traffic traffic(station, start.point, start.number + 1, {kHub});
  const auto idle = [&] { station.progress(); };
  Hello hello{station.ok(), {}};
  if (station.ok()) hello.address = station.name();
  if (!to_hub.send(hello) || !station.ok()) return;
  if (start.point.type == FI_EP_MSG) {
    station.connect(start.number, start.hub);
  } else {
    station.insert(0, start.hub);
  }
  const auto end = std::chrono::steady_clock::now() + patience();
  while (!station.met() && std::chrono::steady_clock::now() < end) idle();
  ASSERT_TRUE(station.met());
  Opening theirs;
  Done done;
  if (!to_hub.send(traffic.prepare(0)) || !to_hub.receive(&theirs, idle)) return;
  traffic.know(0, theirs);
  traffic.run();
  if (to_hub.send(done) && to_hub.receive(&done, idle)) traffic.verify();
}

void serve_hubs(Channel& to_hub) {
  Start start;
  while (to_hub.receive(&start, {}, 100 * patience())) {
    testing::TestPartResultArray results;
    {
      testing::ScopedFakeTestPartResultReporter capture(
          testing::ScopedFakeTestPartResultReporter::INTERCEPT_ALL_THREADS, &results);
      be_spoke(to_hub, start, std::make_shared<Domain>(options_for(start.point)));
    }
    Outcome outcome;
    for (int i = 0; i < results.size() && !outcome.failed; ++i) {
      outcome.failed = results.GetTestPartResult(i).failed();
      std::strncpy(outcome.text.data(), results.GetTestPartResult(i).message(),
                   outcome.text.size() - 1);
    }
    if (!to_hub.send(outcome)) return;
  }
}

// A spoke in a thread of this process.
class Neighbour {
 public:
  Neighbour(const Start& start, std::shared_ptr<Domain> domain) {
    std::array<int, 2> pair{};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair.data()), 0);
    here_ = std::make_unique<Channel>(pair[0]);
    there_ = std::make_unique<Channel>(pair[1]);
    thread_ = std::thread(
        [this, start, domain = std::move(domain)] { be_spoke(*there_, start, domain); });
  }
  ~Neighbour() {
    here_.reset();
    thread_.join();
  }
  Channel& channel() { return *here_; }

 private:
  std::unique_ptr<Channel> here_;
  std::unique_ptr<Channel> there_;
  std::thread thread_;
};

class Transfers : public testing::TestWithParam<Point> {
 protected:
  static void TearDownTestSuite() { processes().clear(); }

  // Peers stay from point to point, because libfabric takes long to start in a new process.
  static std::vector<std::unique_ptr<PeerProcess>>& processes() {
    static std::vector<std::unique_ptr<PeerProcess>> all;
    return all;
  }
  Channel& spoke(std::size_t number) {
    return apart() ? processes()[number]->channel() : neighbours_[number]->channel();
  }
  bool apart() const { return point_.where == Where::kProcesses; }

  void begin(const Station& station, const std::shared_ptr<Domain>& domain) {
    for (std::size_t i = 0; i < point_.peers; ++i) {
      const Start start{point_, i, station.name()};
      if (!apart()) {
        neighbours_.push_back(std::make_unique<Neighbour>(start, domain));
        continue;
      }
      if (processes().size() <= i) processes().push_back(std::make_unique<PeerProcess>(serve_hubs));
      ASSERT_TRUE(processes()[i]->channel().send(start));
    }
  }
  void meet(Station& station) {
    const auto idle = [&] { station.progress(); };
    for (std::size_t i = 0; i < point_.peers; ++i) {
      Hello hello;
      ASSERT_TRUE(spoke(i).receive(&hello, idle) && hello.ok);
      if (point_.type != FI_EP_MSG) station.insert(i, hello.address);
    }
    const auto end = std::chrono::steady_clock::now() + patience();
    while (!station.met() && std::chrono::steady_clock::now() < end) idle();
    ASSERT_TRUE(station.met());
  }
  void exchange(Station& station) {
    const auto idle = [&] { station.progress(); };
    std::vector<std::size_t> spokes;
    for (std::size_t i = 0; i < point_.peers; ++i) spokes.push_back(i + 1);
    Traffic traffic(station, point_, kHub, spokes);
    ASSERT_NO_FATAL_FAILURE(meet(station));
    std::vector<Opening> ours;
    for (std::size_t i = 0; i < point_.peers; ++i) ours.push_back(traffic.prepare(i));
    for (std::size_t i = 0; i < point_.peers; ++i) spoke(i).send(ours[i]);
    for (std::size_t i = 0; i < point_.peers; ++i) {
      Opening theirs;
      ASSERT_TRUE(spoke(i).receive(&theirs, idle));
      traffic.know(i, theirs);
    }
    traffic.run();
    Done done;
    for (std::size_t i = 0; i < point_.peers; ++i) ASSERT_TRUE(spoke(i).receive(&done, idle));
    for (std::size_t i = 0; i < point_.peers; ++i) spoke(i).send(done);
    traffic.verify();
  }
  // Those that did not come to their end are not used again.
  void end() {
    neighbours_.clear();
    for (std::size_t i = 0; apart() && i < point_.peers; ++i) {
      Outcome outcome;
      if (!processes()[i]->channel().receive(&outcome)) return processes().clear();
      if (outcome.failed) {
        ADD_FAILURE() << "in peer " << i << ": " << outcome.text.data();
      }
    }
  }

  const Point point_ = GetParam();
  std::vector<std::unique_ptr<Neighbour>> neighbours_;
};

TEST_P(Transfers, DataOrderAndCountsAreRight) {
  if (point_.type == FI_EP_DGRAM && may_lose()) GTEST_SKIP() << "counts expect every datagram";
  const auto domain = std::make_shared<Domain>(options_for(point_));
  Station station(domain, point_, point_.peers);
  ASSERT_TRUE(station.ok());
  ASSERT_NO_FATAL_FAILURE(begin(station, domain));
  exchange(station);
  end();
}

std::vector<Point> points() {
  std::vector<Point> all;
  for (const Choice& choice : chosen_points(transfer_matrix())) all.push_back(point_of(choice));
  return all;
}

INSTANTIATE_TEST_SUITE_P(Matrix, Transfers, testing::ValuesIn(points()),
                         [](const testing::TestParamInfo<Point>& one) {
                           return name_of(one.param);
                         });

TEST(MatrixPoints, BringEveryPairOfValuesTogether) {
  const Matrix& matrix = transfer_matrix();
  const std::vector<Choice> choices = pairwise_points(matrix);
  for (const Choice& choice : choices) EXPECT_TRUE(matrix.contains(choice));
  EXPECT_TRUE(missing_pairs(matrix, choices).empty());
  for (std::size_t i = 0; i < choices.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) EXPECT_NE(choices[i], choices[j]);
  }
  std::vector<Choice> fewer(choices.begin(), choices.end() - 1);
  EXPECT_FALSE(missing_pairs(matrix, fewer).empty()) << "the last one was not needed";
}

}  // namespace
}  // namespace weft::conformance
