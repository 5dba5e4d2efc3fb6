#!/usr/bin/env python3
"""Takes one real layer out of a published model, with real inputs, as .npy files.

The model is magika's file-type classifier, which its PyPI package ships. The layer is the largest
MatMul whose weight is an initializer, with the bias that is added to it. Its inputs are what the
model computes before that layer for real files of this machine.

usage: extract_layer.py FOLDER [--rows N]
writes A.npy [rows, k], B.npy [k, n], bias.npy [n], layer.json
"""

import argparse
import importlib.util
import json
import pathlib
import sys

import numpy
import onnx
import onnxruntime
from onnx import numpy_helper

HALF = 1024  # the model reads the first and the last 1024 bytes of a file
PADDING = 256
ROOTS = ("/usr/bin", "/usr/lib", "/usr/share", "/etc")


def model_path():
    package = pathlib.Path(importlib.util.find_spec("magika").origin).parent
    models = sorted(package.glob("models/*/model.onnx"))
    if not models:
        sys.exit("extract_layer.py: the magika package holds no models/*/model.onnx; "
                 "reinstall requirements.txt")
    return models[-1]


def largest_matmul(model):
    """(node, weight, bias): the MatMul with the largest 2-D weight, and what is added to it."""
    initial = {i.name: numpy_helper.to_array(i) for i in model.graph.initializer}
    nodes = [n for n in model.graph.node if n.op_type == "MatMul" and
             n.input[1] in initial and initial[n.input[1]].ndim == 2]
    if not nodes:
        sys.exit("extract_layer.py: no MatMul of the model has an initializer as its weight")
    node = max(nodes, key=lambda n: initial[n.input[1]].size)
    adds = [n for n in model.graph.node if n.op_type == "Add" and node.output[0] in n.input]
    biases = [initial[i].reshape(-1) for n in adds for i in n.input if i in initial]
    weight = initial[node.input[1]]
    return node, weight, biases[0] if biases else numpy.zeros(weight.shape[1], weight.dtype)


def window(data):
    """The bytes that the model looks at, as its int32 tokens."""
    data = data.strip()
    tokens = numpy.full(2 * HALF, PADDING, numpy.int32)
    head, tail = data[:HALF], data[-HALF:]
    tokens[: len(head)] = numpy.frombuffer(head, numpy.uint8)
    if tail:
        tokens[-len(tail):] = numpy.frombuffer(tail, numpy.uint8)
    return tokens


def real_windows(rows):
    """Windows of `rows` different files of this machine, in a fixed order."""
    found = []
    for root in ROOTS:
        for path in sorted(pathlib.Path(root).rglob("*")):
            try:
                size = path.stat().st_size
                if path.is_symlink() or not path.is_file() or not 64 <= size <= 1 << 20:
                    continue
                found.append(window(path.read_bytes()))
            except OSError:
                continue
            if len(found) == rows:
                return numpy.stack(found)
    if not found:
        sys.exit("extract_layer.py: no readable file of 64 B to 1 MiB under " + ", ".join(ROOTS))
    return numpy.stack([found[i % len(found)] for i in range(rows)])


def layer_inputs(model, node, rows):
    """What the model feeds to `node` for real files: float32 [rows, k]."""
    wanted = onnx.helper.make_tensor_value_info(node.input[0], onnx.TensorProto.FLOAT, None)
    model.graph.output.append(wanted)
    session = onnxruntime.InferenceSession(model.SerializeToString(),
                                           providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    windows = real_windows(rows)
    parts = [session.run([node.input[0]], {name: windows[i:i + 32]})[0] for i in range(0, rows, 32)]
    return numpy.concatenate(parts).astype(numpy.float32)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--rows", type=int, default=512, help="files to read (default: 512)")
    args = parser.parse_args()
    path = model_path()
    model = onnx.load(path)
    node, weight, bias = largest_matmul(model)
    inputs = layer_inputs(model, node, args.rows)
    args.folder.mkdir(parents=True, exist_ok=True)
    numpy.save(args.folder / "A.npy", inputs)
    numpy.save(args.folder / "B.npy", weight.astype(numpy.float32))
    numpy.save(args.folder / "bias.npy", bias.astype(numpy.float32))
    layer = {"model": f"magika {path.parent.name}", "node": node.name, "m": inputs.shape[0],
             "k": weight.shape[0], "n": weight.shape[1]}
    (args.folder / "layer.json").write_text(json.dumps(layer, indent=2) + "\n")
    print(f"layer {node.name} of {layer['model']}: weight [{layer['k']}, {layer['n']}], "
          f"inputs of {layer['m']} real files")


if __name__ == "__main__":
    main()
