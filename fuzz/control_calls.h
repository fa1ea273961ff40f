// SPDX-License-Identifier: BSD-2-Clause
// How does a fuzzer make calls of fi_control(3), each with an argument of the right type?
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_trigger.h>
#include <sys/uio.h>

#include <array>
#include <cstdint>
#include <deque>
#include <vector>

#include "damaged_info.h"
#include "input.h"
#include "opened_objects.h"

namespace weft::fuzz {

// Ranges of memory to register.
class Ranges {
 public:
  std::vector<iovec> draw(Input& input) {
    std::vector<iovec> ranges(input.byte() < 0x80 ? 1 : input.below(12));
    for (iovec& each : ranges) each = draw_one(input);
    return ranges;
  }

 private:
  static constexpr std::size_t kMemory = std::size_t{64} * 1024;

  // In the memory of this program, or anywhere: nothing reads memory that is registered.
  iovec draw_one(Input& input) {
    const auto at = input.below(kMemory);
    if (input.byte() < 0xe0) return {memory_.data() + at, kMemory - at};
    return {reinterpret_cast<void*>(draw_number(input)), draw_number(input)};
  }

  std::vector<std::uint8_t> memory_ = std::vector<std::uint8_t>(kMemory);
};

// Deferred work that was queued has to be in memory until its domain is closed: these calls outlive
// the objects.
class ControlCalls {
 public:
  ControlCalls(Input& input, OpenedObjects& objects, Ranges& ranges)
      : input_(input), objects_(objects), ranges_(ranges) {}

  // One call of any object.
  void make() {
    fid* const object = objects_.any(input_);
    const int command = input_.byte() < 0xe0 ? static_cast<int>(input_.below(FI_EXPORT_FID + 2))
                                             : static_cast<int>(draw_number(input_));
    if (object == nullptr) return;
    if (input_.byte() >= 0xf0 && command != FI_ENABLE) {
      check_status(fi_control(object, command, nullptr));
      return;
    }
    switch (command) {
      case FI_ALIAS:
        return control_alias(object);
      case FI_GETWAIT:
        return control_wait(object);
      case FI_GET_RAW_MR:
        return control_raw_region(object);
      case FI_MAP_RAW_MR:
        return control_raw_key(object);
      case FI_QUEUE_WORK:
      case FI_CANCEL_WORK:
        return control_work(object, command);
      case FI_FLUSH_WORK:
        check_status(fi_control(object, command, counter()));
        return;
      case FI_REFRESH:
        return control_refresh(object);
      default:
        return control_number(object, command);
    }
  }

 private:
  fid_cntr* counter() { return objects_.one_or_null<fid_cntr>(input_, FI_CLASS_CNTR); }
  void control_alias(fid* object) {
    if (object->fclass != FI_CLASS_EP) return control_number(object, FI_ALIAS);
    fid* made = nullptr;
    struct fi_alias wish {
      input_.byte() >= 0xc0 ? nullptr : &made, draw_flags(input_)
    };
    if (check_status(fi_control(object, FI_ALIAS, &wish)) == 0) objects_.add(made);
  }
  void control_wait(fid* object) {
    std::array<pollfd, 2> descriptors{};
    union {
      fi_wait_pollfd list;
      fi_mutex_cond mutex;
      int descriptor;
    } place{};
    place.list.nfds = input_.below(3);
    if (input_.byte() < 0xc0) place.list.fd = descriptors.data();
    check_status(fi_control(object, FI_GETWAIT, &place));
  }
  void control_raw_region(fid* object) {
    std::uint64_t base = 0;
    Bytes key(input_.below(80));
    std::size_t size = key.size();
    struct fi_mr_raw_attr wanted {
      draw_flags(input_), &base, key.data(), &size
    };
    if (input_.byte() >= 0xe0) wanted.base_addr = nullptr;
    if (input_.byte() >= 0xe0) wanted.key_size = nullptr;
    if (input_.byte() >= 0xe0) wanted.raw_key = nullptr;
    check_status(fi_control(object, FI_GET_RAW_MR, &wanted));
  }
  void control_raw_key(fid* object) {
    std::uint64_t key = 0;
    Bytes raw(input_.byte() < 0x80 ? 8 : 1 + input_.below(80));
    input_.bytes(raw.data(), raw.size());
    struct fi_mr_map_raw wanted {
      draw_flags(input_), draw_number(input_), raw.data(), raw.size(), &key
    };
    if (input_.byte() >= 0xe0) wanted.key = nullptr;
    if (check_status(fi_control(object, FI_MAP_RAW_MR, &wanted)) != 0) return;
    objects_.add_key(reinterpret_cast<fid_domain*>(object), key);
  }
  void control_work(fid* object, int command) {
    fi_deferred_work& work = work_.emplace_back();
    fi_op_cntr& count = counts_.emplace_back();
    work.threshold = draw_number(input_);
    work.triggering_cntr = counter();
    if (input_.byte() >= 0xe0) work.completion_cntr = objects_.one<fid_cntr>(input_, FI_CLASS_CNTR);
    count.cntr = counter();
    count.value = draw_number(input_);
    work.op_type = input_.byte() < 0x80 ? FI_OP_CNTR_ADD : FI_OP_CNTR_SET;
    if (input_.byte() < 0xc0) {
      work.op.cntr = &count;
    } else {
      damage(input_, work.op_type);  // another operation, of no structure
    }
    check_status(fi_control(object, command, &work));
  }
  void control_refresh(fid* object) {
    const auto ranges = ranges_.draw(input_);
    fi_mr_modify wanted{};
    wanted.flags = draw_flags(input_);
    wanted.attr.mr_iov = ranges.empty() ? nullptr : ranges.data();
    wanted.attr.iov_count = ranges.size();
    check_status(fi_control(object, FI_REFRESH, &wanted));
  }
  // Numbers, of which there are enough for every structure.
  void control_number(fid* object, int command) {
    std::array<std::uint64_t, 32> place{};
    place[0] = input_.byte() < 0x80 ? (input_.byte() < 0x80 ? +FI_TRANSMIT : +FI_RECV)
                                    : draw_number(input_);
    place[0] ^= draw_flags(input_);
    check_status(fi_control(object, command, place.data()));
  }

  Input& input_;
  OpenedObjects& objects_;
  Ranges& ranges_;
  std::deque<fi_deferred_work> work_;
  std::deque<fi_op_cntr> counts_;
};

}  // namespace weft::fuzz
