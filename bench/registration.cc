// SPDX-License-Identifier: BSD-2-Clause
// How long does a program register memory and close the region, with how many regions beside it?
//
// usage: weft_registration PROVIDER [LIVE_REGIONS ...]    (default: 0 1000 500000)
//
// Prints rows of a Markdown table: microseconds of fi_mr_reg and of fi_close for 4 KiB, 1 MiB and
// 1 GiB with so many other regions, before and after a peer process has written to one of these.
// Each figure is the median of pieces of 16 regions.
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "channel.h"
#include "fabric_object.h"
#include "failure.h"
#include "process.h"

namespace weft::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kSizes[] = {std::size_t{4} << 10, std::size_t{1} << 20, std::size_t{1} << 30};
constexpr int kPiece = 16;
constexpr int kPieces = 400;
constexpr std::uint64_t kRights = FI_REMOTE_READ | FI_REMOTE_WRITE;
constexpr unsigned kTimeLimit = 300;  // seconds

// An endpoint of the provider, alone in its domain.
class Node {
 public:
  explicit Node(const std::string& provider) {
    const Info hints(fi_allocinfo());
    hints->caps = FI_MSG | FI_RMA;
    hints->ep_attr->type = FI_EP_RDM;
    hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
    hints->fabric_attr->prov_name = ::strdup(provider.c_str());
    fi_info* found = nullptr;
    check_fabric(fi_getinfo(FI_VERSION(1, 17), nullptr, nullptr, 0, hints.get(), &found),
                 "fi_getinfo");
    info_.reset(found);
    fabric_.reset(open<fid_fabric>("fi_fabric", [&](fid_fabric** out) {
      return fi_fabric(info_->fabric_attr, out, nullptr);
    }));
    domain_.reset(open<fid_domain>("fi_domain", [&](fid_domain** out) {
      return fi_domain(fabric_.get(), info_.get(), out, nullptr);
    }));
    fi_av_attr av{};
    av_.reset(open<fid_av>(
        "fi_av_open", [&](fid_av** out) { return fi_av_open(domain_.get(), &av, out, nullptr); }));
    fi_cq_attr cq{};
    cq.format = FI_CQ_FORMAT_CONTEXT;
    cq_.reset(open<fid_cq>(
        "fi_cq_open", [&](fid_cq** out) { return fi_cq_open(domain_.get(), &cq, out, nullptr); }));
    ep_.reset(open<fid_ep>("fi_endpoint", [&](fid_ep** out) {
      return fi_endpoint(domain_.get(), info_.get(), out, nullptr);
    }));
    check_fabric(fi_ep_bind(ep_.get(), &av_->fid, 0), "fi_ep_bind");
    check_fabric(fi_ep_bind(ep_.get(), &cq_->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
    check_fabric(fi_enable(ep_.get()), "fi_enable");
  }

  fid_mr* reg(void* base, std::size_t bytes) {
    fid_mr* region = nullptr;
    check_fabric(
        fi_mr_reg(domain_.get(), base, bytes, kRights, 0, next_key_++, 0, &region, nullptr),
        "fi_mr_reg");
    return region;
  }
  std::uint64_t remote_address(const void* base) const {
    const bool is_virtual = (info_->domain_attr->mr_mode & FI_MR_VIRT_ADDR) != 0;
    return is_virtual ? reinterpret_cast<std::uint64_t>(base) : 0;
  }

  using Name = std::array<char, 256>;
  Name name() {
    Name name{};
    std::size_t size = name.size();
    check_fabric(fi_getname(&ep_->fid, name.data(), &size), "fi_getname");
    return name;
  }

  // Writes 8 bytes there, and waits for the completion.
  void write(const Name& peer, std::uint64_t address, std::uint64_t key) {
    if (peer_ == FI_ADDR_NOTAVAIL &&
        fi_av_insert(av_.get(), peer.data(), 1, &peer_, 0, nullptr) != 1) {
      die("fi_av_insert", "no address");
    }
    static std::uint64_t bytes = 1;
    long posted = -FI_EAGAIN;
    while (posted == -FI_EAGAIN) {
      posted = fi_write(ep_.get(), &bytes, sizeof bytes, nullptr, peer_, address, key, nullptr);
      if (posted == -FI_EAGAIN) poll();
    }
    check_fabric(posted, "fi_write");
    while (!poll()) {
    }
  }
  // Progress; true when an operation has ended.
  bool poll() {
    fi_cq_entry entry{};
    const long got = fi_cq_read(cq_.get(), &entry, 1);
    if (got != -FI_EAGAIN) check_fabric(got, "fi_cq_read");
    return got == 1;
  }

 private:
  template <class Object, class Call>
  static Object* open(const char* what, const Call& call) {
    Object* object = nullptr;
    check_fabric(call(&object), what);
    return object;
  }

  Info info_;
  FabricObject<fid_fabric> fabric_;
  FabricObject<fid_domain> domain_;
  FabricObject<fid_av> av_;
  FabricObject<fid_cq> cq_;
  FabricObject<fid_ep> ep_;
  fi_addr_t peer_ = FI_ADDR_NOTAVAIL;
  std::uint64_t next_key_ = 1;
};

struct Target {
  Node::Name name{};
  std::uint64_t address = 0;
  std::uint64_t key = 0;
};

// The peer process: it writes once to each target that it is told of.
[[noreturn]] void be_peer(const std::string& provider, Channel channel, pid_t parent) {
  end_with_parent(parent);
  set_time_limit(kTimeLimit);
  Node node(provider);
  for (;;) {
    const auto target = channel.receive<Target>();
    if (target.key == FI_KEY_NOTAVAIL) std::_Exit(0);
    node.write(target.name, target.address, target.key);
    channel.send(true);
  }
}

double median(std::vector<double> figures) {
  std::ranges::sort(figures);
  return figures[figures.size() / 2];
}

struct Costs {
  double reg = 0;  // microseconds
  double close = 0;
};

Costs measure(Node& node, void* base, std::size_t bytes) {
  std::vector<double> reg;
  std::vector<double> close;
  const auto microseconds = [](Clock::duration time) {
    return std::chrono::duration<double, std::micro>(time).count() / kPiece;
  };
  for (int piece = 0; piece < kPieces; ++piece) {
    std::array<fid_mr*, kPiece> regions{};
    const auto begin = Clock::now();
    for (fid_mr*& region : regions) region = node.reg(base, bytes);
    const auto registered = Clock::now();
    for (fid_mr* region : regions) check_fabric(fi_close(&region->fid), "fi_close");
    const auto closed = Clock::now();
    reg.push_back(microseconds(registered - begin));
    close.push_back(microseconds(closed - registered));
  }
  return {median(reg), median(close)};
}

void print_row(const std::string& provider, std::size_t live, bool accessed, Node& node,
               void* base) {
  std::printf("| %s | %zu | %s |", provider.c_str(), live, accessed ? "yes" : "no");
  for (const std::size_t bytes : kSizes) {
    const Costs costs = measure(node, base, bytes);
    std::printf(" %.2f + %.2f |", costs.reg, costs.close);
  }
  std::printf("\n");
  std::fflush(stdout);
}

void let_peer_write(Node& node, Channel& channel, fid_mr* region, const void* base) {
  channel.send(Target{node.name(), node.remote_address(base), fi_mr_key(region)});
  while (!channel.has_input()) node.poll();
  channel.receive<bool>();
}

void run(const std::string& provider, const std::vector<std::size_t>& counts) {
  auto [mine, its] = Channel::make_pair();
  const pid_t parent = ::getpid();
  const pid_t child = static_cast<pid_t>(check_system(::fork(), "fork"));
  if (child == 0) be_peer(provider, std::move(its), parent);
  set_time_limit(kTimeLimit);
  constexpr std::size_t kMost = kSizes[2];
  void* const base = ::mmap(nullptr, kMost, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  check_system(base == MAP_FAILED ? -1 : 0, "mmap");
  Node node(provider);
  std::vector<fid_mr*> live;
  for (const std::size_t count : counts) {
    while (live.size() < count) live.push_back(node.reg(base, kSizes[0]));
    print_row(provider, count, false, node, base);
    if (live.empty()) continue;
    let_peer_write(node, mine, live.front(), base);
    print_row(provider, count, true, node, base);
  }
  mine.send(Target{{}, 0, FI_KEY_NOTAVAIL});
  check_system(::waitpid(child, nullptr, 0), "waitpid");
  for (fid_mr* region : live) fi_close(&region->fid);
}

}  // namespace
}  // namespace weft::bench

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: weft_registration PROVIDER [LIVE_REGIONS ...]\n");
    return 2;
  }
  std::vector<std::size_t> counts;
  for (int i = 2; i < argc; ++i) counts.push_back(std::strtoul(argv[i], nullptr, 10));
  if (counts.empty()) counts = {0, 1000, 500000};
  weft::bench::run(argv[1], counts);
  return 0;
}
