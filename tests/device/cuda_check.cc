// SPDX-License-Identifier: BSD-2-Clause
// Do messages and accesses between buffers of cuMemAlloc carry every byte?
//
// Two endpoints of reliable datagrams in one process, each with a buffer of device 0. Prints a line
// for each operation and size, with the bytes a second; ends with 1 at the first difference.
#include <dlfcn.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

[[noreturn]] void fail(const char* what, long code) {
  std::fprintf(stderr, "%s: %ld\n", what, code);
  std::exit(1);
}

void require(const char* what, long code) {
  if (code != 0) fail(what, code);
}

// The functions of libcuda that the check itself calls.
struct Cuda {
  int (*init)(unsigned);
  int (*retain)(void**, int);
  int (*push)(void*);
  int (*allocate)(std::uint64_t*, std::size_t);
  int (*from_host)(std::uint64_t, const void*, std::size_t);
  int (*to_host)(void*, std::uint64_t, std::size_t);

  Cuda() {
    void* const library = ::dlopen("libcuda.so.1", RTLD_NOW);
    if (library == nullptr) fail(::dlerror(), 0);
    find(library, "cuInit", init);
    find(library, "cuDevicePrimaryCtxRetain", retain);
    find(library, "cuCtxPushCurrent_v2", push);
    find(library, "cuMemAlloc_v2", allocate);
    find(library, "cuMemcpyHtoD_v2", from_host);
    find(library, "cuMemcpyDtoH_v2", to_host);
    void* context = nullptr;
    require("cuInit", init(0));
    require("cuDevicePrimaryCtxRetain", retain(&context, 0));
    require("cuCtxPushCurrent", push(context));
  }
  template <class Function>
  static void find(void* library, const char* name, Function*& function) {
    function = reinterpret_cast<Function*>(::dlsym(library, name));
    if (function == nullptr) fail(name, 0);
  }
};

constexpr std::size_t kMost = 16 << 20;

// An endpoint with a registered buffer of the device.
struct End {
  fid_ep* ep = nullptr;
  fid_cq* cq = nullptr;
  fid_av* av = nullptr;
  fid_mr* mr = nullptr;
  std::uint64_t buffer = 0;
  fi_addr_t peer = 0;

  End(fid_domain* domain, fi_info* info, const Cuda& cuda, std::uint64_t key) {
    fi_cq_attr queue{};
    queue.format = FI_CQ_FORMAT_TAGGED;
    fi_av_attr addresses{};
    require("fi_cq_open", fi_cq_open(domain, &queue, &cq, nullptr));
    require("fi_av_open", fi_av_open(domain, &addresses, &av, nullptr));
    require("fi_endpoint", fi_endpoint(domain, info, &ep, nullptr));
    require("fi_ep_bind", fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV));
    require("fi_ep_bind", fi_ep_bind(ep, &av->fid, 0));
    require("fi_enable", fi_enable(ep));
    require("cuMemAlloc", cuda.allocate(&buffer, kMost));
    const iovec iov{reinterpret_cast<void*>(buffer), kMost};
    fi_mr_attr attributes{};
    attributes.mr_iov = &iov;
    attributes.iov_count = 1;
    attributes.access = FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
    attributes.requested_key = key;
    attributes.iface = FI_HMEM_CUDA;
    require("fi_mr_regattr", fi_mr_regattr(domain, &attributes, FI_HMEM_DEVICE_ONLY, &mr));
  }
  void meet(End& other) {
    char name[64];
    std::size_t length = sizeof name;
    require("fi_getname", fi_getname(&other.ep->fid, name, &length));
    if (fi_av_insert(av, name, 1, &peer, 0, nullptr) != 1) fail("fi_av_insert", 0);
  }
  void* at() const { return reinterpret_cast<void*>(buffer); }
};

// Polls both ends until `of` has a completion.
void await(End& of, End& other) {
  fi_cq_tagged_entry entry;
  for (;;) {
    const ssize_t got = fi_cq_read(of.cq, &entry, 1);
    if (got == 1) return;
    if (got != -FI_EAGAIN) fail("fi_cq_read", got);
    const ssize_t rest = fi_cq_read(other.cq, nullptr, 0);
    if (rest < 0 && rest != -FI_EAGAIN && rest != -FI_EAVAIL) fail("fi_cq_read", rest);
  }
}

template <class Post>
void post(End& a, End& b, const char* what, Post call) {
  ssize_t rc = call();
  for (; rc == -FI_EAGAIN; rc = call()) {
    fi_cq_read(a.cq, nullptr, 0);
    fi_cq_read(b.cq, nullptr, 0);
  }
  require(what, rc);
}

void fill(const Cuda& cuda, const End& end, std::size_t size, unsigned seed) {
  std::vector<unsigned char> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<unsigned char>(seed + i * 13);
  require("cuMemcpyHtoD", cuda.from_host(end.buffer, bytes.data(), size));
}

void compare(const Cuda& cuda, const End& end, std::size_t size, unsigned seed) {
  std::vector<unsigned char> bytes(size);
  require("cuMemcpyDtoH", cuda.to_host(bytes.data(), end.buffer, size));
  for (std::size_t i = 0; i < size; ++i) {
    if (bytes[i] != static_cast<unsigned char>(seed + i * 13)) {
      fail("another byte", static_cast<long>(i));
    }
  }
}

}  // namespace

int main() {
  const Cuda cuda;
  fi_info* const hints = fi_allocinfo();
  hints->caps = FI_MSG | FI_TAGGED | FI_RMA | FI_HMEM;
  hints->ep_attr->type = FI_EP_RDM;
  hints->domain_attr->mr_mode = FI_MR_HMEM;
  fi_info* info = nullptr;
  require("fi_getinfo",
          fi_getinfo(FI_VERSION(1, 17), "127.0.0.1", nullptr, FI_SOURCE, hints, &info));
  fid_fabric* fabric = nullptr;
  fid_domain* domain = nullptr;
  require("fi_fabric", fi_fabric(info->fabric_attr, &fabric, nullptr));
  require("fi_domain", fi_domain(fabric, info, &domain, nullptr));
  End a(domain, info, cuda, 1);
  End b(domain, info, cuda, 2);
  a.meet(b);
  b.meet(a);
  unsigned seed = 0;
  for (std::size_t size = 8; size <= kMost; size *= 8) {
    for (const char* what : {"message", "write", "read"}) {
      const bool reads = what[0] == 'r';
      End& source = reads ? b : a;
      End& target = reads ? a : b;
      fill(cuda, source, size, ++seed);
      const auto begin = std::chrono::steady_clock::now();
      if (what[0] == 'm') {
        post(a, b, "fi_trecv", [&] {
          return fi_trecv(b.ep, b.at(), size, fi_mr_desc(b.mr), FI_ADDR_UNSPEC, 1, 0, nullptr);
        });
        post(a, b, "fi_tsend",
             [&] { return fi_tsend(a.ep, a.at(), size, fi_mr_desc(a.mr), a.peer, 1, nullptr); });
        await(b, a);
      } else if (reads) {
        post(a, b, "fi_read", [&] {
          return fi_read(a.ep, a.at(), size, fi_mr_desc(a.mr), a.peer, 0, fi_mr_key(b.mr), nullptr);
        });
      } else {
        post(a, b, "fi_write", [&] {
          return fi_write(a.ep, a.at(), size, fi_mr_desc(a.mr), a.peer, 0, fi_mr_key(b.mr),
                          nullptr);
        });
      }
      await(a, b);
      const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
      compare(cuda, target, size, seed);
      std::printf("%s of %zu bytes: every byte, %.1f MB/s\n", what, size,
                  static_cast<double>(size) / seconds.count() / 1e6);
    }
  }
  return 0;
}
