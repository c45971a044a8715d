// node reference.js MODEL FOLDER CARRIED STEP...
//
// Runs a model with ONNX Runtime on one thread, step by step on inputs that are made up. STEP has
// them apart by commas: NAME=f32:1x3x48x192 is uniform in [-1, 1), NAME=i64::16000 is a scalar, and
// both may have a value behind the shape. CARRIED, OUTPUT=INPUT or nothing, names an output that is
// an input of the next step. Writes FOLDER/STEP/in_NAME.npy and FOLDER/STEP/out_NAME.npy and prints
// the milliseconds of the fastest of ten runs of the last step.
const fs = require('fs');
// Installed where we are started, which is not beside this file.
const ort = require(require.resolve('onnxruntime-node', {paths: [process.cwd()]}));

const DTYPES = {float32: '<f4', int64: '<i8'};

function writeNpy(path, tensor) {
  const {data, dims, type} = tensor;
  if (!(type in DTYPES)) throw new Error(`${path}: ${type} is not among ${Object.keys(DTYPES)}`);
  const shape = dims.map((size) => `${size},`).join('');
  const header =
      `{'descr': '${DTYPES[type]}', 'fortran_order': False, 'shape': (${shape}), }`;
  const start = Buffer.from('\x93NUMPY\x01\x00\x00\x00', 'latin1');
  const length = Math.ceil((start.length + header.length + 1) / 64) * 64 - start.length;
  start.writeUInt16LE(length, 8);
  const text = Buffer.from(header.padEnd(length - 1) + '\n', 'latin1');
  const bytes = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
  fs.writeFileSync(path, Buffer.concat([start, text, bytes]));
}

// A linear congruential generator (Knuth's constants): the same values everywhere.
let seed = 1;
function uniform() {
  seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
  return seed / 2 ** 31 - 1;
}

function makeInput(spec) {
  const [dtype, shape, value] = spec.split(':');
  const dims = shape === '' ? [] : shape.split('x').map(Number);
  const count = dims.reduce((product, size) => product * size, 1);
  if (dtype === 'i64') {
    return new ort.Tensor('int64', new BigInt64Array(count).fill(BigInt(value)), dims);
  }
  const make = value === undefined ? uniform : () => Number(value);
  return new ort.Tensor('float32', Float32Array.from({length: count}, make), dims);
}

async function main() {
  const [model, folder, carried, ...steps] = process.argv.slice(2);
  const [from, to] = carried.split('=');
  const session =
      await ort.InferenceSession.create(model, {intraOpNumThreads: 1, interOpNumThreads: 1});
  let feeds, outputs;
  for (const [i, step] of steps.entries()) {
    fs.mkdirSync(`${folder}/${i}`);
    feeds = {};
    for (const spec of step.split(',')) {
      const [name, made] = spec.split('=');
      feeds[name] = i > 0 && name === to ? outputs[from] : makeInput(made);
      writeNpy(`${folder}/${i}/in_${name}.npy`, feeds[name]);
    }
    outputs = await session.run(feeds);
    for (const name of session.outputNames) {
      writeNpy(`${folder}/${i}/out_${name}.npy`, outputs[name]);
    }
  }
  let fastest = Infinity;
  for (let i = 0; i < 10; ++i) {
    const begin = process.hrtime.bigint();
    await session.run(feeds);
    fastest = Math.min(fastest, Number(process.hrtime.bigint() - begin) / 1e6);
  }
  console.log(fastest);
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
