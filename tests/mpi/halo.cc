// SPDX-License-Identifier: BSD-2-Clause
// Do neighbours on a periodic two-dimensional grid get each other's borders, large and small, by
// each way to send?
#include <array>
#include <string>

#include "check.h"

namespace weft::mpi_test {

namespace {

constexpr int kSteps = 3;

enum class Way { kNonBlocking, kSendReceive, kPersistent };

struct Shape {
  int rows;
  int columns;
  int width;  // of the halo, in cells
};

// One process's block of a global periodic array of doubles, with a halo on each side. A cell's
// right value follows from its global place and the step, so every halo cell can be checked after
// an exchange.
class Block {
 public:
  Block(const Group& grid, Shape shape, std::array<int, 2> processes)
      : grid_(grid), shape_(shape), processes_(processes), pitch_(shape.columns + 2 * shape.width) {
    MPI_Cart_coords(grid_.comm, grid_.rank, 2, place_.data());
    cells_.resize(static_cast<std::size_t>(shape.rows + 2 * shape.width) * pitch_);
    make_type(shape.width, pitch_, &row_band_);         // whole rows: contiguous
    make_type(shape.rows, shape.width, &column_band_);  // strided: width cells of each row
  }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  ~Block() {
    MPI_Type_free(&row_band_);
    MPI_Type_free(&column_band_);
  }

  void fill(int step) {
    for (auto& cell : cells_) cell = -1.0;
    for (int r = 0; r < shape_.rows; ++r) {
      for (int c = 0; c < shape_.columns; ++c) cell(r, c) = wanted(r, c, step);
    }
  }

  // Columns first, then rows with the halo's corners in them: after both, the corners are right
  // too.
  void exchange(Way way) {
    const int width = shape_.width;
    shift(way, 1, column_band_, &cell(0, 0), &cell(0, shape_.columns),
          &cell(0, shape_.columns - width), &cell(0, -width));
    shift(way, 0, row_band_, &cell(0, -width), &cell(shape_.rows, -width),
          &cell(shape_.rows - width, -width), &cell(-width, -width));
  }

  void check(int step, const std::string& what) {
    for (int r = -shape_.width; r < shape_.rows + shape_.width; ++r) {
      for (int c = -shape_.width; c < shape_.columns + shape_.width; ++c) {
        if (cell(r, c) != wanted(r, c, step)) {
          require_equal(cell(r, c), wanted(r, c, step),
                        what + ": cell " + std::to_string(r) + "," + std::to_string(c));
        }
      }
    }
  }

 private:
  void make_type(int rows, int columns, MPI_Datatype* type) const {
    succeeded(MPI_Type_vector(rows, columns, pitch_, MPI_DOUBLE, type), "MPI_Type_vector");
    succeeded(MPI_Type_commit(type), "MPI_Type_commit");
  }

  double& cell(int row, int column) {
    return cells_[static_cast<std::size_t>(row + shape_.width) * pitch_ + (column + shape_.width)];
  }

  double wanted(int row, int column, int step) const {
    const int height = processes_[0] * shape_.rows;
    const int length = processes_[1] * shape_.columns;
    const int global_row = (place_[0] * shape_.rows + row + height) % height;
    const int global_column = (place_[1] * shape_.columns + column + length) % length;
    return static_cast<double>(step) * 1e10 + global_row * 1e5 + global_column;
  }

  // Sends `low` to the neighbour below while receiving `high_halo` from the one above, and the
  // reverse.
  void shift(Way way, int dimension, MPI_Datatype band, double* low, double* high_halo,
             double* high, double* low_halo) {
    int below = 0;
    int above = 0;
    succeeded(MPI_Cart_shift(grid_.comm, dimension, 1, &below, &above), "MPI_Cart_shift");
    std::array<MPI_Request, 4> requests{};
    switch (way) {
      case Way::kSendReceive:
        succeeded(MPI_Sendrecv(low, 1, band, below, 1, high_halo, 1, band, above, 1, grid_.comm,
                               MPI_STATUS_IGNORE),
                  "MPI_Sendrecv");
        succeeded(MPI_Sendrecv(high, 1, band, above, 2, low_halo, 1, band, below, 2, grid_.comm,
                               MPI_STATUS_IGNORE),
                  "MPI_Sendrecv");
        return;
      case Way::kNonBlocking:
        MPI_Irecv(high_halo, 1, band, above, 1, grid_.comm, &requests[0]);
        MPI_Irecv(low_halo, 1, band, below, 2, grid_.comm, &requests[1]);
        MPI_Isend(low, 1, band, below, 1, grid_.comm, &requests[2]);
        MPI_Isend(high, 1, band, above, 2, grid_.comm, &requests[3]);
        break;
      case Way::kPersistent:
        MPI_Recv_init(high_halo, 1, band, above, 1, grid_.comm, &requests[0]);
        MPI_Recv_init(low_halo, 1, band, below, 2, grid_.comm, &requests[1]);
        MPI_Send_init(low, 1, band, below, 1, grid_.comm, &requests[2]);
        MPI_Send_init(high, 1, band, above, 2, grid_.comm, &requests[3]);
        succeeded(MPI_Startall(4, requests.data()), "MPI_Startall");
        succeeded(MPI_Waitall(4, requests.data(), MPI_STATUSES_IGNORE), "MPI_Waitall");
        succeeded(MPI_Startall(4, requests.data()), "MPI_Startall, second time");
        break;
    }
    succeeded(MPI_Waitall(4, requests.data(), MPI_STATUSES_IGNORE), "MPI_Waitall");
    for (auto& request : requests) {
      if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);
    }
  }

  Group grid_;
  Shape shape_;
  std::array<int, 2> processes_;
  int pitch_;
  std::array<int, 2> place_{};
  std::vector<double> cells_;
  MPI_Datatype row_band_ = MPI_DATATYPE_NULL;
  MPI_Datatype column_band_ = MPI_DATATYPE_NULL;
};

}  // namespace

void test_halo_exchange() {
  const Group world(MPI_COMM_WORLD);
  std::array<int, 2> processes{};
  std::array<int, 2> periodic{1, 1};
  MPI_Comm comm = MPI_COMM_NULL;
  succeeded(MPI_Dims_create(world.size, 2, processes.data()), "MPI_Dims_create");
  succeeded(MPI_Cart_create(world.comm, 2, processes.data(), periodic.data(), 1, &comm),
            "MPI_Cart_create");
  const Group grid(comm);
  // Halos of 8 bytes up to 2 MiB: through every protocol that a provider may have.
  for (const Shape shape : {Shape{1, 1, 1}, Shape{8, 8, 1}, Shape{33, 65, 3}, Shape{256, 256, 8},
                            Shape{512, 2048, 128}}) {
    Block block(grid, shape, processes);
    for (const Way way : {Way::kNonBlocking, Way::kSendReceive, Way::kPersistent}) {
      for (int step = 1; step <= kSteps; ++step) {
        block.fill(step);
        block.exchange(way);
        block.check(step, "halo " + std::to_string(shape.rows) + "x" +
                              std::to_string(shape.columns) + " way " +
                              std::to_string(static_cast<int>(way)));
      }
    }
  }
  MPI_Comm_free(&comm);
}

}  // namespace weft::mpi_test
