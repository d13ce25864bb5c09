/** Settings of tools: servers, web search, and the list of all calls. */
import { LinkButton } from "../../components/Button.tsx";
import { texts } from "../../texts/texts.ts";
import { ToolServersSection } from "./servers/ToolServersSection.tsx";
import { ToolCallList } from "./ToolCallList.tsx";
import { WebToolsSection } from "./WebToolsSection.tsx";

/** Path of the list of all calls. */
export const CALLS_PATH = "/settings/tools/calls";

/** The page, or the list of all calls. */
export function ToolsPage({ item }: { item: string | undefined }) {
  const t = texts.toolCalls;
  if (item === "calls") return <ToolCallList />;
  return (
    <section class="privacy">
      <h2>{texts.toolsPage.title}</h2>
      <ToolServersSection />
      <WebToolsSection />
      <section class="privacy-part" aria-labelledby="tool-calls">
        <h3 id="tool-calls" tabIndex={-1}>{t.list}</h3>
        <p class="muted">{t.listHint}</p>
        <div class="actions-row">
          <LinkButton href={CALLS_PATH}>{t.showList}</LinkButton>
        </div>
      </section>
    </section>
  );
}
