"""Writes forward.tsv.gz: what PyTorch computes for small inputs of every operator and dtype.

Usage: python forward_cases.py | gzip -n9 > ../resources/dev/weft/tensor/op/forward.tsv.gz
One case a line: operator, attributes (k=v;...), inputs, outputs. A tensor is dtype[sizes]:values;
several are separated by a bar; an error is the word "error".
"""
import itertools
import torch
import torch.nn.functional as F

D = {n: getattr(torch, n) for n in
     "float64 float32 float16 bfloat16 int64 int32 int16 int8 uint8 bool".split()}
NAN, INF = float("nan"), float("inf")


def t(dtype, values, shape=None):
    x = torch.tensor(values, dtype=D[dtype])
    return x if shape is None else x.reshape(shape)


def num(v):
    if isinstance(v, bool):
        return "1" if v else "0"
    return repr(v)


def enc(x):
    name = str(x.dtype).split(".")[-1]
    vals = x.double() if x.dtype.is_floating_point else x.long()
    return f"{name}[{','.join(map(str, x.shape))}]:" + " ".join(num(v) for v in vals.reshape(-1).tolist())


def case(op, f, tensors, **attrs):
    ins = "|".join(enc(x) for x in tensors)
    a = ";".join(f"{k}={','.join(map(str, v)) if isinstance(v, (list, tuple)) else v}" for k, v in attrs.items())
    try:
        out = f(*[x.clone() for x in tensors])
        outs = out if isinstance(out, (tuple, list)) else [out]
        res = "|".join(enc(o) for o in outs)
    except (RuntimeError, IndexError, ValueError):
        res = "error"
    print("\t".join([op, a, ins, res]))


def vals(dtype, n=2, k=0):
    base = {"bool": [1, 0, 1, 1, 0, 1], "uint8": [3, 250, 7, 1, 9, 4]}.get(dtype)
    if base is None:
        base = [3, -2, 5, 1, -7, 4] if not D[dtype].is_floating_point else [1.5, -2.25, 0.75, 3.0, -0.5, 2.0]
    return [base[(i + k) % 6] for i in range(n)]


BIN = {"add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": torch.div, "maximum": torch.maximum,
       "minimum": torch.minimum, "eq": torch.eq, "lt": torch.lt, "ge": torch.ge, "logical_and": torch.logical_and}
for a, b in itertools.product(D, D):
    x, y = t(a, vals(a)), t(b, vals(b, 2, 3))
    for op in ("add", "div", "eq"):
        case(op, BIN[op], [x, y])
    case("mul", torch.mul, [x, y[0]])
    case("add", torch.add, [x[0], y])
    case("sub", torch.sub, [x[0], y[1]])
    case("maximum", torch.maximum, [x, y])
    case("add_", lambda p, q: p.add_(q), [x, y])
    case("copy_", lambda p, q: p.copy_(q), [t(a, vals(a)), t(b, [1, 0])])
    case("where", torch.where, [t("bool", [1, 0]), x, y[0]])
    case("cat", lambda p, q: torch.cat([p, q]), [x, y], dim=0)
for a in D:
    x = t(a, vals(a, 6), (2, 3))
    for s in (2, 2.5):
        for op, f in {"add_scalar": lambda x: x + s, "mul_scalar": lambda x: x * s, "div_scalar": lambda x: x / s,
                      "rdiv_scalar": lambda x: s / x, "eq_scalar": lambda x: x == s, "gt_scalar": lambda x: x > s,
                      "mul_scalar_": lambda x: x.mul_(s), "fill_": lambda x: x.fill_(s)}.items():
            if op == "fill_" and s == 2.5 and a == "bool":
                continue
            case(op, f, [x], value=s)
        if a != "bool" or s == 2:
            case("sub_scalar", lambda x: x - s, [x], value=s)
            case("rsub_scalar", lambda x: s - x, [x], value=s)
        if a != "bool":
            case("pow_scalar", lambda x: x ** s, [x.abs()], value=s)
    case("add_scalar", lambda x: x + 2.5, [x[0, 0]], value=2.5)
    for o in "neg abs sign square exp sin sqrt reciprocal sigmoid floor isnan logical_not tanh".split():
        y = x.abs() if o == "sqrt" and a != "bool" else x
        case(o, getattr(torch, o), [y])
    for o in ("sum", "mean", "prod", "amax", "amin", "argmax", "argmin", "all", "any"):
        f = getattr(torch, o)
        case(o, lambda x: f(x), [x])
        for d, k in ((0, False), (1, True), (-1, False)):
            case(o, lambda x: f(x, dim=d, keepdim=k), [x], dim=d, keepdim=k)
    case("cumsum", lambda x: torch.cumsum(x, 1), [x], dim=1)
    case("max", lambda x: torch.max(x, 1), [x], dim=1, keepdim=False)
    case("min", lambda x: torch.min(x, 0, keepdim=True), [x], dim=0, keepdim=True)
    case("t", lambda x: x.t().contiguous(), [x])
    case("matmul", torch.matmul, [x, x.t().contiguous()])
    case("tril", torch.tril, [x], diagonal=0)
    case("relu", torch.relu, [x])
    case("clamp", lambda x: x.clamp(0, 2), [x], min=0, max=2)
    case("clamp", lambda x: x.clamp(0, 2.5), [x], min=0, max=2.5)
    case("clamp", lambda x: x.clamp(min=0.5), [x], min=0.5)
    for o in ("silu", "gelu"):
        case(o, getattr(F, o), [x], approximate="none")
    case("softmax", lambda x: torch.softmax(x, 0), [x], dim=0)
    case("var", lambda x: torch.var(x, dim=[0, 1], correction=1), [x], dim=[0, 1], correction=1)
    for b in D:
        case("to", lambda x: x.to(D[b]), [t(a, [0, 1, 2, 3])], dtype=b)
    for s in ([0], [2, 0], [0, 3]):
        e = torch.empty(s, dtype=D[a])
        for o in ("sum", "prod", "all", "any", "amax", "argmax", "mean"):
            f = getattr(torch, o)
            case(o, lambda x: f(x), [e])
            if len(s) == 2:
                for d in (0, 1):
                    case(o, lambda x: f(x, dim=d), [e], dim=d, keepdim=False)
    case("add", torch.add, [torch.empty(0, 3, dtype=D[a]), x[:1]])

for a in ("float64", "float32", "bfloat16", "float16"):
    w = t(a, [-INF, -3.5, -1.0, -0.0, 0.0, 0.25, 1.0, 2.5, 80.0, INF, NAN])
    for o in ("exp log log1p sqrt rsqrt reciprocal sin cos tanh sigmoid erf relu abs neg sign floor square "
              "isnan logical_not").split():
        case(o, getattr(torch, o), [w])
    case("silu", F.silu, [w[1:8]])
    for m in ("none", "tanh"):
        case("gelu", lambda x: F.gelu(x, approximate=m), [w[1:8]], approximate=m)
    case("leaky_relu", lambda x: F.leaky_relu(x, 0.2), [w], slope=0.2)
    case("clamp", lambda x: x.clamp(-1, 2), [w], min=-1, max=2)
    case("clamp", lambda x: x.clamp(max=0.5), [w], max=0.5)
    n = t(a, [1.0, NAN, 3.0, -2.0, 5.0, INF], (2, 3))
    for o in ("sum", "mean", "amax", "amin", "argmax", "argmin", "prod", "logsumexp"):
        f = getattr(torch, o)
        for d in (0, 1):
            case(o, lambda x: f(x, dim=d), [n], dim=d, keepdim=False)
    case("maximum", torch.maximum, [n, torch.zeros_like(n)])
    case("minimum", torch.minimum, [n, torch.zeros_like(n)])
    case("max", lambda x: torch.max(x, 1), [n], dim=1, keepdim=False)
    g = torch.Generator().manual_seed(7)
    r = lambda *s: (torch.randn(s, generator=g) * 2).to(D[a])
    x = r(2, 3, 4)
    for d in (0, 1, -1):
        case("softmax", lambda x: torch.softmax(x, d), [x], dim=d)
        case("log_softmax", lambda x: torch.log_softmax(x, d), [x], dim=d)
    for p in (0.0, 1.0, 2.0, 3.0, INF, -INF):
        case("vector_norm", lambda x: torch.linalg.vector_norm(x, p), [x], ord=p)
        case("vector_norm", lambda x: torch.linalg.vector_norm(x, p, dim=1, keepdim=True), [x], ord=p, dim=1, keepdim=True)
    for d in ([], [0], [1], [0, 2], [-1, 0]):
        for k in (False, True):
            dd = d or [0, 1, 2]
            for o in ("sum", "mean", "amax", "logsumexp"):
                f = getattr(torch, o)
                case(o, lambda x: f(x, dim=dd, keepdim=k), [x], dim=dd, keepdim=k)
            for c in (0, 1):
                case("var", lambda x: torch.var(x, dim=dd, correction=c, keepdim=k), [x], dim=dd, correction=c, keepdim=k)
                case("std", lambda x: torch.std(x, dim=dd, correction=c, keepdim=k), [x], dim=dd, correction=c, keepdim=k)
    wt, b = r(4), r(4)
    case("rms_norm", lambda x, w: F.rms_norm(x, [4], w, 1e-5), [x, wt], shape=[4], eps=1e-5)
    case("rms_norm", lambda x: F.rms_norm(x, [3, 4]), [x], shape=[3, 4])
    case("layer_norm", lambda x, w, b: F.layer_norm(x, [4], w, b), [x, wt, b], shape=[4], eps=1e-5)
    case("layer_norm", lambda x: F.layer_norm(x, [3, 4]), [x], shape=[3, 4], eps=1e-5)
    for s1, s2 in (([3], [3]), ([2, 3], [3]), ([3], [3, 2]), ([2, 3], [3, 4]), ([2, 2, 3], [3, 4]), ([2, 3], [2, 3, 4]),
                   ([2, 1, 2, 3], [3, 3, 2]), ([3], [2, 3, 2]), ([2, 4, 3], [3]), ([2, 0], [0, 3]), ([0, 2], [2, 3]),
                   ([2, 3], [2, 3]), ([4, 2, 0], [4, 0, 3]), ([1, 3], [3, 1]), ([2, 2, 3], [3, 3, 2])):
        case("matmul", torch.matmul, [r(*s1), r(*s2)])
    case("bmm", torch.bmm, [r(2, 2, 3), r(2, 3, 2)])
    case("linear", F.linear, [r(2, 2, 3), r(4, 3), r(4)])
    case("linear", F.linear, [r(2, 0), r(4, 0), r(4)])
    case("addmm", lambda c, x, y: torch.addmm(c, x, y, beta=0.5, alpha=2), [r(3), r(2, 4), r(4, 3)], beta=0.5, alpha=2.0)
    case("addmm", torch.addmm, [r(4, 1), r(4, 0), r(0, 3)], beta=1.0, alpha=1.0)
    case("dot", torch.dot, [r(4), r(4)])
    case("outer", torch.outer, [r(2), r(3)])
    lg, tg = r(4, 5), t("int64", [3, 0, 4, 1])
    for red in ("mean", "sum", "none"):
        for ig, ls in ((-100, 0.0), (0, 0.1), (1, 0.3)):
            case("cross_entropy", lambda x, y: F.cross_entropy(x, y, reduction=red, ignore_index=ig, label_smoothing=ls),
                 [lg, tg], reduction=red, ignore=ig, smoothing=ls)
        case("nll_loss", lambda x, y: F.nll_loss(x, y, reduction=red, ignore_index=0), [lg, tg], reduction=red, ignore=0)
        case("mse_loss", lambda x, y: F.mse_loss(x, y, reduction=red), [lg, r(4, 5)], reduction=red)
    case("cross_entropy", lambda x, y: F.cross_entropy(x, y), [r(2, 3, 2), t("int64", [[0, 2], [1, 1]])], reduction="mean", ignore=-100, smoothing=0.0)
    case("cross_entropy", lambda x, y: F.cross_entropy(x, y), [r(3), t("int64", 2)], reduction="mean", ignore=-100, smoothing=0.0)
    case("cross_entropy", lambda x, y: F.cross_entropy(x, y), [r(2, 3), t("int64", [0, 3])], reduction="mean", ignore=-100, smoothing=0.0)
    case("cross_entropy", lambda x, y: F.cross_entropy(x, y), [r(2, 3), t("int64", [-100, -100])], reduction="mean", ignore=-100, smoothing=0.0)
    case("embedding", lambda w, i: F.embedding(i, w), [r(5, 3), t("int64", [[4, 0], [4, 1]])])
    case("embedding", lambda w, i: F.embedding(i, w), [r(5, 3), t("int64", [5])])
    case("index_select", lambda x, i: x.index_select(1, i), [r(2, 4), t("int64", [3, 0, 3])], dim=1)
    case("gather", lambda x, i: x.gather(1, i), [r(2, 4), t("int64", [[3, 0], [1, 1]])], dim=1)
    case("scatter_add", lambda x, i, s: x.scatter_add(0, i, s), [r(3, 2), t("int64", [[2, 0], [2, 1]]), r(2, 2)], dim=0)
    case("masked_fill", lambda x, m: x.masked_fill(m, -INF), [x, t("bool", [1, 0, 0, 1])], value=-INF)
    for dg in (-2, -1, 0, 1, 3):
        case("tril", lambda x: x.tril(dg), [x], diagonal=dg)
        case("triu", lambda x: x.triu(dg), [x], diagonal=dg)
    case("pow", torch.pow, [r(2, 3).abs(), r(3)])
    case("addcmul", lambda x, y, z: torch.addcmul(x, y, z, value=0.5), [r(2, 3), r(3), r(2, 1)], value=0.5)
    case("addcdiv", lambda x, y, z: torch.addcdiv(x, y, z, value=0.5), [r(2, 3), r(3), r(2, 1)], value=0.5)
    case("lerp", torch.lerp, [r(2, 3), r(2, 3), torch.rand(2, 3, generator=g).to(D[a])])
    case("atan2", torch.atan2, [r(2, 3), r(3)])
    case("stack", lambda x, y: torch.stack([x, y], 1), [r(2, 3), r(2, 3)], dim=1)
    case("cat", lambda *x: torch.cat(x, 1), [r(2, 3), r(2, 0), r(2, 1)], dim=1)
x = torch.arange(24).reshape(2, 3, 4)
for a in ([0, 1, 9, 1], [1, 1, 3, 1], [2, 0, 4, 2], [2, -3, -1, 1], [0, 2, 1, 1], [2, 1, 4, 3]):
    case("slice", lambda x: x[tuple(slice(None) for _ in range(a[0])) + (slice(*a[1:]),)].contiguous(), [x], args=a)
for a in ([6, 4], [-1], [2, -1, 2], [24, 1], [5, 5], [-1, -1]):
    case("reshape", lambda x: x.reshape(a), [x], shape=a)
    case("reshape_of_transpose", lambda x: x.transpose(0, 2).reshape(a), [x], shape=a)
for a in ([2, 0, 1], [-1, 0, 1], [0, 0, 1], [0, 1]):
    case("permute", lambda x: x.permute(a).contiguous(), [x], dims=a)
for a in ([2, 3, 4], [5, 2, 3, 4], [-1, 3, 4], [3, 3, 4]):
    case("expand", lambda x: x.expand(a).contiguous(), [x], shape=a)
case("expand", lambda x: x.expand(2, -1, 4).contiguous(), [t("int64", [1, 2, 3], (3, 1))], shape=[2, -1, 4])
for a in ([0, 1, 1], [1, 1, 2], [2, -2, 2], [1, 2, 2]):
    case("narrow", lambda x: x.narrow(*a).contiguous(), [x], args=a)
case("flatten", lambda x: x.flatten(1), [x], args=[1, -1])
case("unflatten", lambda x: x.unflatten(2, [2, -1]), [x], dim=2, shape=[2, -1])
case("squeeze", lambda x: x.squeeze(), [x.reshape(2, 1, 12, 1)])
case("unsqueeze", lambda x: x.unsqueeze(-2), [x], dim=-2)
case("split", lambda x: [p.contiguous() for p in x.split(3, 2)], [x], size=3, dim=2)
case("chunk", lambda x: [p.contiguous() for p in x.chunk(3, 2)], [x], chunks=3, dim=2)
case("unbind", lambda x: [p.contiguous() for p in x.unbind(1)], [x], dim=1)
case("movedim", lambda x: x.movedim(0, -1).contiguous(), [x], args=[0, -1])
case("flip", lambda x: x.flip(0, 2), [x], dims=[0, 2])
case("roll", lambda x: x.roll(3, 2), [x], args=[3, 2])
case("roll", lambda x: x.roll(-1, 0), [x], args=[-1, 0])
case("repeat", lambda x: x.repeat(2, 1, 3), [t("int64", [[1, 2], [3, 4]])], repeats=[2, 1, 3])
case("index", lambda x, i: x[i], [x, t("int64", [[1, 0], [1, 1]])])
for a in D:
    y = t(a, [3, 1, 2, 1, 0, 5], (2, 3))
    for d in (0, 1):
        for desc in (False, True):
            case("sort", lambda x: x.sort(dim=d, descending=desc, stable=True), [y], dim=d, descending=desc)
    for v in (-2, 2):
        case("ceil", torch.ceil, [t(a, [v, 1])])
for a in ("float64", "float32", "bfloat16", "float16"):
    y = t(a, [-1.5, -0.5, 0.5, 1.5, 2.5, NAN, INF])
    case("round", torch.round, [y])
    case("ceil", torch.ceil, [y])
    case("sort", lambda x: x.sort(dim=0), [y], dim=0, descending=False)
    case("topk", lambda x: x.topk(3), [y], k=3, dim=0)
case("topk", lambda x: x.topk(9), [x], k=9, dim=-1)
