/** What helps when no server was found: start one; or, where Parlor looks from elsewhere, what each server has to be told. */
import { Notice } from "../../components/Notice.tsx";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";

/** What makes each server listen on more than its own machine; from the servers' own documentation. */
const LISTENING: readonly (readonly [software: string, command: string])[] = [
  ["Ollama", "OLLAMA_HOST=0.0.0.0 ollama serve"],
  ["LM Studio", "Developer → Server Settings → Serve on Local Network"],
  ["llama.cpp", "llama-server --host 0.0.0.0 -m model.gguf"],
  ["KoboldCpp", "koboldcpp --host 0.0.0.0 model.gguf"],
  ["vLLM", "vllm serve MODEL --host 0.0.0.0"],
];

/** As compose.yaml has it. */
const LOOK_AROUND = "PARLOR_DISCOVER_HOSTS=host.docker.internal";

const LOOPBACK = /^(127\.|localhost$|\[?::1\]?$)/;

/** The advice, by where the search looked from. */
export function ServerAdvice() {
  const setup = useStore().setup.value;
  const t = texts.connections;
  const hosts = setup?.discover_hosts ?? [];
  const isElsewhere = hosts.some((host) => !LOOPBACK.test(host));
  if (!setup?.in_container && !isElsewhere) {
    return <Notice tone="info" title={t.noneFound}>{t.noneFoundAdvice}</Notice>;
  }
  const w = texts.welcome;
  return (
    <>
      <Notice tone="info" title={t.noneFound}>{isElsewhere ? w.elsewhere(hosts.join(", ")) : w.container}</Notice>
      <div class="server-advice">
        {!isElsewhere && <code>{LOOK_AROUND}</code>}
        <p>{w.listen}</p>
        <dl>
          {LISTENING.map(([software, command]) => (
            <div key={software}>
              <dt>{software}</dt>
              <dd>
                <code>{command}</code>
              </dd>
            </div>
          ))}
        </dl>
        <p class="muted">{w.listenNote}</p>
      </div>
    </>
  );
}
