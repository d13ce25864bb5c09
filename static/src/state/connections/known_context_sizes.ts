/**
 * The context sizes of well-known model families, to suggest one where no server says it: servers often load a model
 * with less. Figures are those of the model cards and of the providers' documentation.
 */

const K = 1024;

/** The first pattern that a name contains decides, so special names come before their family's. Sizes are in tokens. */
const FAMILIES: readonly (readonly [pattern: RegExp, tokens: number])[] = [
  [/\b1m\b/, K * K],
  [/gpt-5/, 400_000],
  [/gpt-4\.1/, 1_047_576],
  [/gpt-4(?:o|-turbo|\.5)|chatgpt-4o/, 128_000],
  [/gpt-4/, 8192],
  [/gpt-3\.5/, 16_385],
  [/gpt-oss/, 128 * K],
  [/^(?:openai\/)?o(?:1|3|4)(?:$|-)/, 200_000],
  [/claude/, 200_000],
  [/gemini-1\.5-pro/, 2_097_152],
  [/gemini/, 1_048_576],
  [/grok-4/, 256_000],
  [/grok/, 128 * K],
  [/llama-?4-scout/, 10_485_760],
  [/llama-?4/, K * K],
  [/llama-?3\.[1-9]/, 128 * K],
  [/llama-?3/, 8192],
  [/(?:code)llama/, 16_384],
  [/llama-?2/, 4096],
  [/tinyllama/, 2048],
  [/qwen-?3.*(?:2507|coder|next)/, 256 * K],
  [/qwen-?3/, 40_960],
  [/qwq/, 40_960],
  [/qwen-?(?:2|1\.5)/, 32_768],
  [/gemma-?3n|gemma-?3-(?:270m|1b)/, 32_768],
  [/gemma-?3/, 128 * K],
  [/gemma/, 8192],
  [/(?:mistral|ministral).*(?:nemo|large|3\.[12]|medium)|ministral|devstral|pixtral/, 128 * K],
  [/magistral/, 40_960],
  [/mixtral-?8x22/, 65_536],
  [/mi[sx]tral|codestral/, 32_768],
  [/phi-?4-(?:mini|multimodal)/, 128 * K],
  [/phi-?4/, 16_384],
  [/phi-?3\.5/, 128 * K],
  [/phi-?3/, 4096],
  [/deepseek/, 128 * K],
  [/command-?a/, 256_000],
  [/command-?r/, 128 * K],
  [/glm-?4\.6/, 200_000],
  [/glm-?4-(?:9b|32b)-0414/, 32_768],
  [/glm-?4/, 128 * K],
  [/kimi-?k2.*0905|kimi-?k2-thinking/, 256 * K],
  [/kimi/, 128 * K],
  [/granite-?3\.0/, 4096],
  [/granite/, 128 * K],
  [/olmo-?3/, 65_536],
  [/olmo-?2/, 4096],
  [/smollm-?3/, 65_536],
  [/smollm/, 8192],
  [/exaone-?4/, 128 * K],
  [/exaone|internlm|falcon-?3/, 32_768],
  [/minimax-?m1/, 1_000_000],
  [/minimax/, 204_800],
  [/nemotron/, 128 * K],
  [/solar|yi-/, 4096],
];

/** Smaller and larger numbers in names are parameters, versions and quantizations. */
const [LEAST_K, MOST_K] = [4, 1024];

/**
 * Suggests the context size of a model by its name.
 *
 * @param model Such as `"Qwen2.5-7B-Instruct-Q4_K_M.gguf"` or `"meta-llama/llama-3.1-8b-instruct"`.
 * @returns Tokens; undefined if the family isn't known.
 */
export function suggestContextSize(model: string): number | undefined {
  const name = model.toLowerCase().replaceAll(/[_ :]/g, "-");
  const [, own] = /(?:^|-)(\d{1,4})k(?=-|\.|$)/.exec(name) ?? [];
  if (own !== undefined && Number(own) >= LEAST_K && Number(own) <= MOST_K) return Number(own) * K;
  return FAMILIES.find(([pattern]) => pattern.test(name))?.[1];
}
