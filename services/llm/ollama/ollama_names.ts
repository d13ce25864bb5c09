/** Names of Ollama's models: a name without a tag means the tag `latest`. */

/** Returns a name with its tag: `"llama3.2:latest"`, `"hf.co/me/model:Q4_K_M"`. */
export function addTag(name: string): string {
  return /:[^/]*$/.test(name) ? name : `${name}:latest`;
}

/** Reports whether two names mean the same model. */
export function isSameOllamaModel(one: string, other: string): boolean {
  return addTag(one) === addTag(other);
}
