// tanh and erf of f32 by tables: 16 intervals, two for each power of two, so that one pick of a
// register's lanes finds a coefficient. On each f(x) = f0 + t q(t) with t = |x| - x0, where x0 is a
// float for which f(x0) is a float as well, to within 2^-10 of its last place. So only the last sum
// rounds in the size of the result; t q(t), a quarter of it or less, brings little. Below the first
// power of two f0 is x itself and q(t) = f(x) / x - 1.
// Source of accurate tables: Gal, "Computing elementary functions: a new approach for achieving
// high accuracy and good performance", 1986.
#include "ir/passes/math_functions.h"

namespace svod {
namespace {

constexpr int kIntervals = 16;
constexpr int kTableRows = 9;  // x0, f0, then q's coefficients from the constant one on

// Minimax in units of the result's last place, each coefficient rounded before the next is fitted:
// 0.098 for tanh, 0.188 for erf, 0.03 in most intervals.
// clang-format off
constexpr double kTanh[kTableRows][kIntervals] = {
    {0x0p+0, 0x1.3ff3f2p-4, 0x1.bfe512p-4, 0x1.4018fcp-3, 0x1.bffda6p-3, 0x1.400624p-2, 0x1.c0023cp-2, 0x1.400dfap-1, 0x1.c0129cp-1, 0x1.3fed1ep+0, 0x1.bff09ap+0, 0x1.3ff6bcp+1, 0x1.d28ap+1, 0x1.36fcp+2, 0x1.c4d2p+2, 0x1.fe28p+2},
    {0x0p+0, 0x1.3f4dc2p-4, 0x1.be1e3cp-4, 0x1.3d842ap-3, 0x1.b8fac6p-3, 0x1.35ff1ep-2, 0x1.a5747ap-2, 0x1.1bfe2cp-1, 0x1.686fb4p-1, 0x1.b247a4p-1, 0x1.e1f878p-1, 0x1.f92486p-1, 0x1.ff4d32p-1, 0x1.fff03ap-1, 0x1.ffffdp-1, 0x1.fffff8p-1},
    {0x1.40d74cp-49, 0x1.fce37ap-1, 0x1.f9ed26p-1, 0x1.f3b17cp-1, 0x1.e84308p-1, 0x1.d113c4p-1, 0x1.a944f6p-1, 0x1.627a08p-1, 0x1.0242d2p-1, 0x1.1f4904p-2, 0x1.d2617p-4, 0x1.b3ee28p-6, 0x1.655d7ap-9, 0x1.f8c62p-13, 0x1.7ff118p-19, 0x1.fffa4p-22},
    {-0x1.ee4ccep-39, -0x1.3d5d28p-4, -0x1.b8d364p-4, -0x1.35e262p-3, -0x1.a488c2p-3, -0x1.19962cp-2, -0x1.5e0ff4p-2, -0x1.893cd8p-2, -0x1.6b9ea8p-2, -0x1.e75a32p-3, -0x1.b706d6p-4, -0x1.ae16eep-6, -0x1.64e014p-9, -0x1.f8d2b6p-13, -0x1.802fbap-19, -0x1.ffb50cp-22},
    {-0x1.555556p-2, -0x1.4cd7fp-2, -0x1.46012ap-2, -0x1.3542fap-2, -0x1.183834p-2, -0x1.c190bep-3, -0x1.16d7ecp-3, -0x1.235ba4p-6, 0x1.4f415ap-4, 0x1.bbb342p-4, 0x1.01d112p-4, 0x1.17042cp-6, 0x1.da933p-10, 0x1.4fb942p-13, 0x1.00aa3p-19, 0x1.53b416p-22},
    {0x1.3aeb5cp-20, 0x1.b1c22cp-5, 0x1.1d7534p-4, 0x1.8e86cap-4, 0x1.04efaep-3, 0x1.43df7cp-3, 0x1.5c2b3ap-3, 0x1.1a566ep-3, 0x1.f1a982p-5, -0x1.9b73dcp-7, -0x1.81781ap-6, -0x1.07f136p-7, -0x1.d82a62p-11, -0x1.4dec4ap-14, -0x1.fb088ep-21, -0x1.4bc894p-23},
    {0x1.10f8b8p-3, -0x1.a2d55cp+0, 0x1.7a1784p+2, 0x1.a32a16p-2, 0x1.e3a2cap-5, 0x1.1b958ap-5, -0x1.a53d0ap-7, -0x1.ba5694p-5, -0x1.e9e618p-5, -0x1.3b0782p-6, 0x1.e485c2p-9, 0x1.77346p-9, 0x1.732dc8p-12, 0x1.1312ep-15, 0x1.8aa56cp-22, 0x1.e2022ap-25},
    {0x1.8b1362p-11, -0x1.63a292p+2, 0x1.3f0deep+1, -0x1.9b7d22p-4, -0x1.87fa24p-4, -0x1.3ad4ap-4, -0x1.03f71p-4, -0x1.81e9cp-6, 0x1.b068cp-7, 0x1.ee9edp-7, 0x1.10f08cp-9, -0x1.6e7f0cp-11, -0x1.e20228p-14, -0x1.8c2bacp-17, -0x1.3530b2p-23, -0x1.d91bacp-27},
    {-0x1.dcd194p-5, 0x1.ed2a04p+11, -0x1.a74caep+13, -0x1.5998e6p+7, 0x1.dcdb12p+3, 0x1.785318p+0, 0x1.0020fep+0, -0x1.16e738p-7, 0x1.773f8cp-5, -0x1.241b0ep-8, -0x1.03d0dcp-9, 0x1.f35006p-15, 0x1.5d3e04p-15, 0x1.5f6a84p-19, 0x1.9f1e98p-25, 0x1.ce3bfcp-30}};
constexpr double kErf[kTableRows][kIntervals] = {
    {0x0p+0, 0x1.3ffe74p-4, 0x1.bfefap-4, 0x1.3fee66p-3, 0x1.c0092ap-3, 0x1.40170ep-2, 0x1.c00812p-2, 0x1.400fcp-1, 0x1.c0091ep-1, 0x1.3fe7fcp+0, 0x1.c005b8p+0, 0x1.3ff308p+1, 0x1.ca1p+1, 0x0p+0, 0x0p+0, 0x0p+0},
    {0x0p+0, 0x1.68575ep-4, 0x1.f76f18p-4, 0x1.6616aap-3, 0x1.f19a86p-3, 0x1.5dc18cp-2, 0x1.db0fa2p-2, 0x1.3f2574p-1, 0x1.917712p-1, 0x1.d87bp-1, 0x1.f92da2p-1, 0x1.ffca8cp-1, 0x1.fffff2p-1, 0x1p+0, 0x1p+0, 0x1p+0},
    {0x1.06eba8p-3, 0x1.1f1b8p+0, 0x1.1d6e54p+0, 0x1.19e6aap+0, 0x1.135da6p+0, 0x1.05f98ep+0, 0x1.dd1332p-1, 0x1.86da62p-1, 0x1.0ca302p-1, 0x1.e4d6d4p-3, 0x1.b03364p-5, 0x1.1e1554p-9, 0x1.9d10a6p-19, 0x0p+0, 0x0p+0, 0x0p+0},
    {0x1.2804b4p-20, -0x1.66e0a4p-4, -0x1.f36ea6p-4, -0x1.604cf4p-3, -0x1.e1edc2p-3, -0x1.478f8ap-2, -0x1.a17852p-2, -0x1.e8a906p-2, -0x1.d626d8p-2, -0x1.2eef94p-2, -0x1.7a31c4p-4, -0x1.657c0ap-8, -0x1.74245p-17, 0x0p+0, 0x0p+0, 0x0p+0},
    {-0x1.815e06p-2, -0x1.7badd8p-2, -0x1.7395f2p-2, -0x1.650988p-2, -0x1.4bc75ap-2, -0x1.18ec4ap-2, -0x1.888dc4p-3, -0x1.c779f4p-5, 0x1.7cc8cp-4, 0x1.57219p-3, 0x1.713736p-4, 0x1.11fdp-7, 0x1.b6d23ep-16, 0x0p+0, 0x0p+0, 0x0p+0},
    {0x1.dbc094p-7, 0x1.659af4p-5, 0x1.d802e2p-5, 0x1.5ab77p-4, 0x1.d5fc3ap-4, 0x1.32344ap-3, 0x1.6c393p-3, 0x1.695c0cp-3, 0x1.cc4f6ap-4, -0x1.8c87c8p-8, -0x1.8a0d6cp-5, -0x1.1b9afep-7, -0x1.5937dcp-15, 0x0p+0, 0x0p+0, 0x0p+0},
    {-0x1.5f58f8p-2, 0x1.8e3308p+3, 0x1.c908d2p-1, -0x1.be2fdep-1, -0x1.68bd68p-2, 0x1.7c7654p-8, 0x1.9d694ep-6, -0x1.a647e8p-6, -0x1.18819ap-4, -0x1.82dd9p-5, 0x1.b220b4p-8, 0x1.9356fcp-8, 0x1.6f6a44p-15, 0x0p+0, 0x0p+0, 0x0p+0},
    {0x1.a5cd6ap+2, -0x1.900d54p-6, 0x1.381ccap+3, -0x1.2f304ep-4, -0x1.0e34bcp+0, -0x1.68c534p-5, -0x1.bde12ap-5, -0x1.52884cp-5, -0x1.608638p-7, 0x1.521fdcp-6, 0x1.283d1ep-7, -0x1.5cf72p-9, -0x1.e87f06p-15, 0x0p+0, 0x0p+0, 0x0p+0},
    {-0x1.1d9cd2p+5, -0x1.c30c5ep+14, -0x1.91c5d8p+10, 0x1.1beb8ep+9, 0x1.de5ebap+7, 0x1.0e3be4p+3, 0x1.3ed2b6p-3, -0x1.7f939ap-5, 0x1.0615f8p-4, 0x1.e49ad8p-9, -0x1.8538d4p-8, 0x1.9a5498p-12, 0x1.1c8696p-14, 0x0p+0, 0x0p+0, 0x0p+0}};
// clang-format on

// Where the intervals begin: [0, 1/16), [1/16, 3/32), [3/32, 1/8), ...
constexpr double kFirst = 0x1p-4;
constexpr int64_t kFirstNumber = (0x3d800000 >> 22) - 1;

Value ByTable(const double (&table)[kTableRows][kIntervals], double largest, Value x) {
  Value size = Abs(x);
  // NaN takes some interval and stays NaN.
  size = Where(size.Literal(largest) < size, largest, size);
  Value number = (size.BitsAs(Scalar::kI32) >> 22) - kFirstNumber;
  number = number.Apply(Op::kMax, {number.Literal(0)});
  auto row = [&](int i) { return PickFrom(absl::MakeConstSpan(table[i], kIntervals), number, x); };
  Value t = size - row(0);
  Value q = row(kTableRows - 1);
  for (int i = kTableRows - 2; i >= 2; --i) q = Fma(q, t, row(i));
  Value f0 = Where(size < size.Literal(kFirst), size, row(1));
  return WithSignOf(Fma(t, q, f0), x);
}

}  // namespace

// tanh rounds to 1 from 9.02 on, erf from 3.84 on.
Value TanhByTable(Value x) { return ByTable(kTanh, 9.25, x); }
Value ErfByTable(Value x) { return ByTable(kErf, 4, x); }

}  // namespace svod
