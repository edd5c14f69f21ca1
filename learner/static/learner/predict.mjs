// Predict with a release from raw texts, in a browser or in Node 20: no library, no Python, no other host.
//
//   import { load, fromAddress } from "./predict.mjs";
//   const model = await load(fromAddress("release/"), { publicKey: "..." });
//   model.predict(["an example"]);  // [{ label: "fruit", probabilities: [0.9, 0.1] }]
//
// It reads hashed words and the static encoder, one class or several a record. Files are used only if the site's key
// signed their digests, and a model only if it predicts the release's samples as the site did.

const TOLERANCE = 1e-6;
const SCHEMA = "dpal-linear-model/1";
const utf8 = new TextDecoder("utf-8", { fatal: true });

// Characters whose class is another in the tables of the site's tokeniser (Unicode 8) than in those of today.
const YOUNG_MARKS = new RegExp(
  "[" + String.raw`\u{7fd}\u{890}-\u{891}\u{897}-\u{89f}\u{8ca}-\u{8e2}\u{9fe}\u{afa}-\u{aff}\u{b55}\u{c04}\u{c3c}` +
  String.raw`\u{d00}\u{d3b}-\u{d3c}\u{d81}\u{eba}\u{ece}\u{180f}\u{1885}-\u{1886}\u{1abf}-\u{1add}` +
  String.raw`\u{1ae0}-\u{1aeb}\u{1df6}-\u{1dfb}\u{a82c}\u{a8c5}\u{a8ff}\u{a9bd}\u{105c9}\u{105e4}` +
  String.raw`\u{10d24}-\u{10d27}\u{10d69}-\u{10d6d}\u{10eab}-\u{10eac}\u{10efa}-\u{10eff}\u{10f46}-\u{10f50}` +
  String.raw`\u{10f82}-\u{10f85}\u{11070}\u{11073}-\u{11074}\u{110c2}\u{110cd}\u{111c9}\u{111cf}\u{1123e}` +
  String.raw`\u{11241}\u{1133b}\u{11383}\u{11385}\u{1138e}\u{11391}\u{113bb}-\u{113c0}\u{113c5}` +
  String.raw`\u{113c7}-\u{113c8}\u{113ce}\u{113d0}\u{113d2}\u{113e1}-\u{113e2}\u{11438}-\u{1143f}` +
  String.raw`\u{11442}-\u{11444}\u{11446}\u{1145e}\u{1182f}-\u{11837}\u{11839}-\u{1183a}\u{11938}` +
  String.raw`\u{1193b}-\u{1193c}\u{1193e}\u{11943}\u{119d4}-\u{119d7}\u{119da}-\u{119db}\u{119e0}` +
  String.raw`\u{11a01}-\u{11a0a}\u{11a33}-\u{11a38}\u{11a3b}-\u{11a3e}\u{11a47}\u{11a51}-\u{11a56}` +
  String.raw`\u{11a59}-\u{11a5b}\u{11a8a}-\u{11a96}\u{11a98}-\u{11a99}\u{11b60}\u{11b62}-\u{11b64}\u{11b66}` +
  String.raw`\u{11c30}-\u{11c36}\u{11c38}-\u{11c3d}\u{11c3f}\u{11c92}-\u{11ca7}\u{11caa}-\u{11cb0}` +
  String.raw`\u{11cb2}-\u{11cb3}\u{11cb5}-\u{11cb6}\u{11d31}-\u{11d36}\u{11d3a}\u{11d3c}-\u{11d3d}` +
  String.raw`\u{11d3f}-\u{11d45}\u{11d47}\u{11d90}-\u{11d91}\u{11d95}\u{11d97}\u{11ef3}-\u{11ef4}` +
  String.raw`\u{11f00}-\u{11f01}\u{11f36}-\u{11f3a}\u{11f40}\u{11f42}\u{11f5a}\u{13430}-\u{13440}` +
  String.raw`\u{13447}-\u{13455}\u{1611e}-\u{16129}\u{1612d}-\u{1612f}\u{16d68}-\u{16d6a}\u{16f4f}\u{16fe4}` +
  String.raw`\u{1cf00}-\u{1cf2d}\u{1cf30}-\u{1cf46}\u{1e000}-\u{1e006}\u{1e008}-\u{1e018}\u{1e01b}-\u{1e021}` +
  String.raw`\u{1e023}-\u{1e024}\u{1e026}-\u{1e02a}\u{1e08f}\u{1e130}-\u{1e136}\u{1e2ae}\u{1e2ec}-\u{1e2ef}` +
  String.raw`\u{1e4ec}-\u{1e4ef}\u{1e5ee}-\u{1e5ef}\u{1e6e3}\u{1e6e6}\u{1e6ee}-\u{1e6ef}\u{1e6f5}` +
  String.raw`\u{1e944}-\u{1e94a}` + "]",
  "u",
);
const YOUNG_PUNCTUATION = new RegExp(
  "[" + String.raw`\u{61d}\u{9fd}\u{a76}\u{c77}\u{c84}\u{166d}\u{1b4e}-\u{1b4f}\u{1b7d}-\u{1b7f}\u{2e43}-\u{2e4f}` +
  String.raw`\u{2e52}-\u{2e5d}\u{10d6e}\u{10ead}\u{10ed0}\u{10f55}-\u{10f59}\u{10f86}-\u{10f89}\u{111c9}` +
  String.raw`\u{113d4}-\u{113d5}\u{113d7}-\u{113d8}\u{1144b}-\u{1144f}\u{1145a}-\u{1145b}\u{1145d}` +
  String.raw`\u{11660}-\u{1166c}\u{116b9}\u{1183b}\u{11944}-\u{11946}\u{119e2}\u{11a3f}-\u{11a46}` +
  String.raw`\u{11a9a}-\u{11a9c}\u{11a9e}-\u{11aa2}\u{11b00}-\u{11b09}\u{11be1}\u{11c41}-\u{11c45}` +
  String.raw`\u{11c70}-\u{11c71}\u{11ef7}-\u{11ef8}\u{11f43}-\u{11f4f}\u{11fff}\u{12ff1}-\u{12ff2}` +
  String.raw`\u{16d6d}-\u{16d6f}\u{16e97}-\u{16e9a}\u{16fe2}\u{1e5ff}\u{1e95e}-\u{1e95f}` + "]",
  "u",
);

export function fromAddress(base, options) {
  return async (name) => {
    const answer = await fetch(new URL(name, new URL(base, globalThis.location?.href)), options);
    if (!answer.ok) throw new Error(`${name} cannot be read: ${answer.status}`);
    return new Uint8Array(await answer.arrayBuffer());
  };
}

// `read` gives a promise of the bytes of a file of the release by its name.
export async function load(read, { publicKey }) {
  const manifest = await read("manifest.json");
  const { signature } = JSON.parse(utf8.decode(await read("manifest.sig")));
  const key = await crypto.subtle.importKey("raw", bytesOf(publicKey), "Ed25519", false, ["verify"]);
  if (!(await crypto.subtle.verify("Ed25519", key, bytesOf(signature), manifest))) {
    throw new Error("The key you trust did not sign this release.");
  }
  const { files, release } = JSON.parse(utf8.decode(manifest));
  const verified = async (name) => {
    const bytes = await read(name);
    const digest = [...new Uint8Array(await crypto.subtle.digest("SHA-256", bytes))];
    if (digest.map((one) => one.toString(16).padStart(2, "0")).join("") !== files[name]?.sha256) {
      throw new Error(`${name} differs from what was signed.`);
    }
    return bytes;
  };
  const json = async (name) => JSON.parse(utf8.decode(await verified(name)));
  const weights = await json("weights.json");
  if (weights.schema !== SCHEMA) throw new Error(`The form ${weights.schema} is unknown here.`);
  const { kind, parameters } = await json("features.json");
  const lists = files["words.json"] ? await json("words.json") : null;
  const words = wordsOf(parameters.normalizer, lists);
  const features =
    kind === "hashing_text"
      ? hashedWords(words, parameters)
      : kind === "static_encoder"
        ? wordVectors(words, parameters, await npz(await verified("encoder.npz")))
        : null;
  if (features === null) throw new Error(`Features of the kind ${kind} are not made here.`);
  const model = modelOf(weights, features, release);
  const samples = await json("samples.json");
  model.predict(samples.records).forEach(({ probabilities }, row) =>
    probabilities.forEach((share, place) => {
      if (!(Math.abs(share - samples.probabilities[row][place]) <= TOLERANCE)) {
        throw new Error("The model predicts something else here than on the site that released it.");
      }
    }),
  );
  return model;
}

function modelOf(weights, features, release) {
  const { classes, coef, intercept, multiclass } = weights;
  const severalClasses = multiclass === "independent";
  const sigmoid = (value) => Math.exp(-log1pexp(-value));
  const predictOne = (text) => {
    const row = features(text);
    const values = coef.map((column, place) => dot(column, row) + intercept[place]);
    if (severalClasses) {
      const probabilities = values.map(sigmoid);
      return { labels: classes.filter((_, place) => probabilities[place] > 0.5), probabilities };
    }
    if (values.length === 1) {
      return { label: classes[values[0] > 0 ? 1 : 0], probabilities: [sigmoid(-values[0]), sigmoid(values[0])] };
    }
    const logs = multiclass === "softmax" ? values : values.map((value) => -log1pexp(-value));
    const most = Math.max(...logs);
    const shares = logs.map((value) => Math.exp(value - most));
    const total = shares.reduce((sum, share) => sum + share, 0);
    return { label: classes[values.indexOf(Math.max(...values))], probabilities: shares.map((share) => share / total) };
  };
  return { ...release, classes, severalClasses, features, predict: (texts) => texts.map(predictOne) };
}

const log1pexp = (value) => Math.max(value, 0) + Math.log1p(Math.exp(-Math.abs(value)));
const dot = (left, right) => left.reduce((sum, value, place) => sum + value * right[place], 0);
const bytesOf = (base64) => Uint8Array.from(atob(base64), (one) => one.charCodeAt(0));

// The rules L0 to L5, as `normal.py` of the client has them.
const SPACE = /[\t-\r\x1c- \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]/u;
const INVISIBLE = /[\p{Cc}\p{Cf}]/u;

export function fold(character) {
  const code = character.codePointAt(0);
  // Of Cherokee the capitals are the folded form; a small letter without a dot is its own.
  if ((code >= 0x13a0 && code <= 0x13f5) || code === 0x131) return character;
  if (code >= 0x13f8 && code <= 0x13fd) return String.fromCodePoint(code - 8);
  if (code >= 0xab70 && code <= 0xabbf) return String.fromCodePoint(code - 0xab70 + 0x13a0);
  if (code === 0x1e9e) return "ss";
  return [...character.toUpperCase()].map((one) => one.toLowerCase()).join("");
}

function translated(character, wordsOnly) {
  if (SPACE.test(character)) return " ";
  if (INVISIBLE.test(character) || (wordsOnly && "'’ʼ".includes(character))) return "";
  return wordsOnly && /\p{P}/u.test(character) ? " " : character;
}

export function normal(text, rule) {
  const wordsOnly = rule !== "L0";
  // Casing and composing can each bring back something the other would change.
  for (let pass = 0; pass < 4; pass += 1) {
    const before = text;
    if (wordsOnly) text = [...text.normalize("NFKC")].map(fold).join("");
    text = [...text.normalize("NFC")].map((one) => translated(one, wordsOnly)).join("");
    text = text.split(" ").filter(Boolean).join(" ");
    if (text === before) break;
  }
  return text;
}

function byCodePoint(left, right) {
  const [first, second] = [[...left], [...right]];
  const place = first.findIndex((one, at) => one !== second[at]);
  if (place < 0) return first.length - second.length;
  return place < second.length ? first[place].codePointAt(0) - second[place].codePointAt(0) : 1;
}

function wordsOf(rule, lists) {
  if (!/^L[0-5]$/.test(rule)) throw new Error(`The rule ${rule} for texts is unknown here.`);
  const split = (text) => normal(text, rule === "L0" ? "L0" : "L1").split(" ").filter(Boolean);
  if (rule === "L0" || rule === "L1") return split;
  const { masks, number, other } = lists;
  const slots = new Set([number, other, ...Object.values(masks)]);
  const [functionWords, commonWords] = [new Set(lists.function_words), new Set(lists.common_words)];
  const masked = (word) => (/\p{Nd}/u.test(word) ? number : Object.hasOwn(masks, word) ? masks[word] : word);
  const content = (word) => (functionWords.has(word) ? "" : masked(word));
  const general = (word) => {
    const left = content(word);
    return !left || slots.has(left) || commonWords.has(left) ? left : other;
  };
  const listed = (word) => (general(word) === other ? "" : general(word));
  const one = { L2: masked, L3: content, L4: general, L5: listed }[rule];
  return (text) => {
    const found = split(text).map(one);
    // Numbers in a row are one.
    if (rule === "L2") return found.filter((word, at) => !(at && word === number && found[at - 1] === number));
    return [...new Set(found.filter(Boolean))].sort(byCodePoint);
  };
}

function hashedWords(words, { n_features: size, ngram_range: [smallest, largest], norm_bound: bound }) {
  return (text) => {
    const row = new Float64Array(size);
    const found = words(text);
    for (let length = smallest; length <= Math.min(largest, found.length); length += 1) {
      for (let start = 0; start + length <= found.length; start += 1) {
        const hash = murmur3(new TextEncoder().encode(found.slice(start, start + length).join(" ")));
        // As scikit-learn takes the absolute value of a signed hash, whose smallest number has none.
        const column = hash === -(2 ** 31) ? (2 ** 31 - 1 - (size - 1)) % size : Math.abs(hash) % size;
        row[column] += hash >= 0 ? 1 : -1;
      }
    }
    return kept(row, bound);
  };
}

// MurmurHash3 of 32 bits, seed 0.
function murmur3(bytes) {
  const turned = (value, bits) => (value << bits) | (value >>> (32 - bits));
  const mixed = (block) => Math.imul(turned(Math.imul(block, 0xcc9e2d51), 15), 0x1b873593);
  const whole = bytes.length & ~3;
  let hash = 0;
  for (let at = 0; at < whole; at += 4) {
    hash ^= mixed(bytes[at] | (bytes[at + 1] << 8) | (bytes[at + 2] << 16) | (bytes[at + 3] << 24));
    hash = (Math.imul(turned(hash, 13), 5) + 0xe6546b64) | 0;
  }
  let rest = 0;
  for (let at = bytes.length - 1; at >= whole; at -= 1) rest = (rest << 8) | bytes[at];
  if (bytes.length & 3) hash ^= mixed(rest);
  hash ^= bytes.length;
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) | 0;
}

function wordVectors(words, { n_features: size, norm_bound: bound }, table) {
  const { data: vectors, shape } = table.vectors;
  const scales = table.scales.data;
  const pieces = new Map(utf8.decode(table.vocabulary.data).split("\n").map((piece, number) => [piece, number]));
  return (text) => {
    const row = new Float64Array(size);
    for (const word of words(text)) {
      for (const number of piecesOf(word, pieces)) {
        for (let place = 0; place < size; place += 1) row[place] += scales[number] * vectors[number * shape[1] + place];
      }
    }
    return kept(row, bound);
  };
}

const CHINESE =
  /[\u4e00-\u9fff\u3400-\u4dbf\u{20000}-\u{2a6df}\u{2a700}-\u{2b73f}\u{2b740}-\u{2b81f}\u{2b920}-\u{2ceaf}\uf900-\ufaff\u{2f800}-\u{2fa1f}]/u;

// One character as BERT's uncased tokeniser sees it: without accents, small, alone where it is Chinese.
export function uncased(character) {
  if (character === "\0" || character === "\ufffd") return "";
  if (YOUNG_MARKS.test(character)) return character;
  if (/[\p{Cc}\p{Cf}\p{Co}]/u.test(character) && !"\t\n\r".includes(character)) return "";
  if (/\p{White_Space}/u.test(character)) return " ";
  const alone = CHINESE.test(character) ? ` ${character} ` : character;
  const bare = [...alone.normalize("NFD")].filter((one) => !isMark(one));
  return bare.map((one) => one.toLowerCase()).join("");
}

const isMark = (one) => one === "\u{1734}" || one === "\u{1171e}" || (/\p{Mn}/u.test(one) && !YOUNG_MARKS.test(one));

export function isPunctuation(one) {
  return /[!-/:-@[-`{-~\u{166d}\u{111c9}]/u.test(one) || (/\p{P}/u.test(one) && !YOUNG_PUNCTUATION.test(one));
}

function piecesOf(word, pieces) {
  const parts = [];
  for (const one of [...word].map(uncased).join("")) {
    if (/\p{White_Space}/u.test(one)) parts.push("");
    else if (isPunctuation(one)) parts.push(one, "");
    else parts.push((parts.pop() ?? "") + one);
  }
  return parts.filter(Boolean).flatMap((part) => longestPieces([...part], pieces));
}

function longestPieces(part, pieces) {
  const unknown = [pieces.get("[UNK]")];
  if (part.length > 100) return unknown;
  const found = [];
  for (let start = 0, end; start < part.length; start = end) {
    const piece = (stop) => pieces.get((start ? "##" : "") + part.slice(start, stop).join(""));
    end = part.length;
    while (end > start && piece(end) === undefined) end -= 1;
    if (end === start) return unknown;
    found.push(piece(end));
  }
  return found;
}

// Scaled to the bound and rounded to float32 as the model was trained on.
function kept(row, bound) {
  const norm = Math.sqrt(dot(row, row));
  if (norm === 0) return row;
  const room = 4 * (row.length + 8) * 2 ** -53;
  return row.map((value) => towardsZero(((value * bound) / norm) * (1 - 2 * room)));
}

const view = new DataView(new ArrayBuffer(4));

function towardsZero(value) {
  const narrow = Math.fround(value);
  if (Math.abs(narrow) <= Math.abs(value)) return narrow;
  view.setFloat32(0, narrow);
  view.setInt32(0, view.getInt32(0) - 1);
  return view.getFloat32(0);
}

// Arrays of a zip of `.npy` files by their names.
async function npz(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let end = bytes.length - 22;
  while (end >= 0 && view.getUint32(end, true) !== 0x06054b50) end -= 1;
  const found = {};
  for (let left = view.getUint16(end + 10, true), at = view.getUint32(end + 16, true); left > 0; left -= 1) {
    const [method, size] = [view.getUint16(at + 10, true), view.getUint32(at + 20, true)];
    const [named, extra, comment] = [28, 30, 32].map((place) => view.getUint16(at + place, true));
    const local = view.getUint32(at + 42, true);
    const start = local + 30 + view.getUint16(local + 26, true) + view.getUint16(local + 28, true);
    const packed = bytes.subarray(start, start + size);
    const name = utf8.decode(bytes.subarray(at + 46, at + 46 + named)).replace(/\.npy$/, "");
    found[name] = npy(method === 8 ? await inflated(packed) : packed);
    at += 46 + named + extra + comment;
  }
  return found;
}

async function inflated(packed) {
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

const ARRAYS = { "|i1": Int8Array, "|u1": Uint8Array, "<f4": Float32Array, "<f8": Float64Array };

function npy(bytes) {
  const start = 10 + (bytes[8] | (bytes[9] << 8));
  const head = utf8.decode(bytes.subarray(10, start));
  const kind = /'descr': '([^']*)'/.exec(head)[1];
  if (!ARRAYS[kind] || head.includes("True")) throw new Error(`Arrays of ${kind} are not read here.`);
  const shape = /'shape': \(([^)]*)\)/.exec(head)[1].split(",").filter((one) => one.trim()).map(Number);
  return { data: new ARRAYS[kind](new Uint8Array(bytes.subarray(start)).buffer), shape };
}
