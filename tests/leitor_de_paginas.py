"""Ler uma página como o navegador a lê (html5lib), e conferir o que toda página nossa promete."""

import contextlib
import re
import shutil
from pathlib import Path
from urllib.parse import unquote

import html5lib
import pytest

NAVEGADORES = ("chromium", "chromium-browser", "google-chrome")


def ler(html: str):
    """A árvore da página; erros de HTML (fora dos que o html5lib não conhece) são falha."""
    leitor = html5lib.HTMLParser(namespaceHTMLElements=False)
    arvore = leitor.parse(html)
    assert not leitor.errors, leitor.errors[:5]
    return arvore


def todos(arvore, tipo: str):
    """Os elementos de um tipo, em qualquer espaço de nomes (SVG e MathML inclusive)."""
    return [no for no in arvore.iter() if str(no.tag).rsplit("}", 1)[-1] == tipo]


def texto(no) -> str:
    return " ".join("".join(no.itertext()).split())


def conferir(html: str, pasta: Path):
    """Ids únicos, âncoras e arquivos que existem, alt em toda figura, nada pedido a ninguém."""
    arvore = ler(html)
    ids = [no.get("id") for no in arvore.iter() if no.get("id")]
    assert len(ids) == len(set(ids)), sorted(i for i in ids if ids.count(i) > 1)
    for no in arvore.iter():
        for atributo in ("aria-labelledby", "aria-describedby"):
            assert set((no.get(atributo) or "").split()) <= set(ids), no.attrib
    for a in todos(arvore, "a"):
        href = a.get("href")
        assert href and texto(a), a.attrib
        if href.startswith("#"):
            assert unquote(href[1:]) in ids, href
        elif not re.match(r"https?:|mailto:", href):
            assert (pasta / unquote(href.split("#")[0])).exists(), href
    for img in todos(arvore, "img"):
        assert img.get("src", "").startswith("data:image/"), img.attrib
        assert img.get("alt", "").strip(), img.attrib
    assert not todos(arvore, "link") and not todos(arvore, "iframe") and not todos(arvore, "object")
    scripts = todos(arvore, "script")
    assert len(scripts) == 1 and not scripts[0].attrib
    for no in arvore.iter():
        assert no.get("src", "data:").startswith("data:") and not no.get("srcset"), no.attrib
        assert not [a for a in no.attrib if str(a).startswith("on")], no.attrib
    for estilo in todos(arvore, "style"):
        assert not re.search(r"url\(|@import", estilo.text)
    niveis = [int(no.tag[1]) for no in arvore.iter() if re.fullmatch(r"h[1-6]", str(no.tag))]
    assert niveis[0] == 1 and niveis.count(1) == 1
    assert all(b <= a + 1 for a, b in zip(niveis, niveis[1:], strict=False)), niveis
    return arvore


@contextlib.contextmanager
def navegador():
    """O Chromium da máquina, aberto; sem ele, ou sem o playwright, o teste pula e diz por quê."""
    programa = next(filter(None, map(shutil.which, NAVEGADORES)), None)
    if programa is None:
        pytest.skip("não há chromium nesta máquina (apt-get install chromium)")
    sync = pytest.importorskip("playwright.sync_api", reason="falta o playwright")
    opcoes = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    with sync.sync_playwright() as p:
        yield p.chromium.launch(executable_path=programa, args=opcoes)


def conferir_no_navegador(arquivo: Path) -> str:
    """360, 1280 e 1920 px, claro e escuro, papel, teclado e axe, numa sessão só do Chromium.

    Devolve o texto que se lê na página, para quem chama exigir o que devia estar lá.
    """
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="falta o axe")
    recados, pedidos = [], []
    with navegador() as chromium:
        aba = chromium.new_page()
        aba.on("request", lambda r: pedidos.append(r.url))
        aba.on("console", lambda m: recados.append(m.text))
        aba.on("pageerror", lambda e: recados.append(str(e)))
        for tema in ("light", "dark"):
            aba.emulate_media(color_scheme=tema)
            aba.goto(arquivo.as_uri())
            # Sem JavaScript e sem clique, a cor vem do sistema.
            fundo = aba.evaluate("getComputedStyle(document.body).backgroundColor")
            assert (fundo == "rgb(255, 255, 255)") == (tema == "light"), fundo
            aba.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
            for largura in (360, 1280, 1920):
                aba.set_viewport_size({"width": largura, "height": 800})
                sobra = aba.evaluate("document.documentElement.scrollWidth - innerWidth")
                assert sobra <= 0, f"{arquivo.name} rola {sobra} px para o lado em {largura} px"
            achados = axe.Axe().run(aba).response["violations"]
            graves = [(v["id"], v["nodes"][0]["html"][:200], v["nodes"][0]["failureSummary"])
                      for v in achados if v["impact"] in ("serious", "critical")]  # fmt: skip
            assert not graves, graves
        texto = aba.inner_text("body")
        _teclado(aba)
        _papel(aba)
        chromium.close()
    assert {u.split("#")[0] for u in pedidos if not u.startswith("data:")} == {arquivo.as_uri()}
    assert not recados, recados
    return texto


def _teclado(aba) -> None:
    # O primeiro Tab é o atalho para o conteúdo; Enter leva até lá. O botão troca o tema.
    aba.reload()
    aba.keyboard.press("Tab")
    assert aba.evaluate("document.activeElement.className") == "pular"
    assert aba.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    aba.keyboard.press("Enter")
    assert aba.evaluate("location.hash") == "#conteudo"
    antes = aba.evaluate("getComputedStyle(document.body).backgroundColor")
    aba.focus("#tema")
    aba.keyboard.press("Enter")
    assert aba.evaluate("getComputedStyle(document.body).backgroundColor") != antes


def _papel(aba) -> None:
    # No papel: fundo claro qualquer que seja o tema, nada dobrado, nenhum botão.
    aba.evaluate("document.querySelectorAll('details').forEach(d => d.open = false)")
    aba.emulate_media(media="print", color_scheme="dark")
    fundo = "getComputedStyle(document.documentElement).getPropertyValue('--fundo')"
    assert aba.evaluate(fundo) == "#ffffff"
    assert aba.evaluate("getComputedStyle(document.getElementById('tema')).display") == "none"
    dobrados = aba.evaluate("""() => [...document.querySelectorAll('main details:not(nav *, .diagrama *) > :not(summary)')]
        .filter(no => !no.closest('.so-tela') && !no.checkVisibility({contentVisibilityAuto: true})).length""")
    assert dobrados == 0
    assert len(aba.pdf(format="A4")) > 5000
