(function () {
  'use strict';
  var raiz = document.documentElement, chave = 'lab-tema';
  // Sem script a página segue o tema do sistema; o botão só existe para quem quer o outro.
  function guardado() { try { return localStorage.getItem(chave); } catch (e) { return null; } }
  function guardar(tema) { try { localStorage.setItem(chave, tema); } catch (e) { /* sem memória */ } }
  var antes = guardado();
  if (antes === 'claro' || antes === 'escuro') { raiz.dataset.tema = antes; }
  function atual() {
    return raiz.dataset.tema || (matchMedia('(prefers-color-scheme: dark)').matches ? 'escuro' : 'claro');
  }
  // Uma seção dobrada se abre quando alguém chega a ela por um link.
  function abrirDestino() {
    var alvo = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    for (var no = alvo; no; no = no.parentElement) {
      if (no.tagName === 'DETAILS') { no.open = true; }
    }
    if (alvo) { alvo.scrollIntoView(); }
  }
  // Parar no Tab só onde há o que rolar.
  function conferirRolagem() {
    document.querySelectorAll('.rolavel, pre, .formula').forEach(function (caixa) {
      if (caixa.scrollWidth > caixa.clientWidth + 1 || caixa.clientWidth === 0) { caixa.tabIndex = 0; }
      else { caixa.removeAttribute('tabindex'); }
    });
  }
  document.addEventListener('DOMContentLoaded', function () {
    var botao = document.getElementById('tema');
    function rotular() { botao.textContent = atual() === 'escuro' ? 'Tema claro' : 'Tema escuro'; }
    botao.hidden = false;
    rotular();
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', rotular);
    botao.addEventListener('click', function () {
      raiz.dataset.tema = atual() === 'escuro' ? 'claro' : 'escuro';
      guardar(raiz.dataset.tema);
      rotular();
    });
    var todas = document.getElementById('abrir-tudo');
    if (todas) {
      todas.hidden = false;
      todas.addEventListener('click', function () {
        var abrir = !document.querySelector('details.relatorio[open]');
        document.querySelectorAll('details.relatorio').forEach(function (d) { d.open = abrir; });
        todas.textContent = abrir ? 'Fechar todos os relatórios' : 'Abrir todos os relatórios';
        todas.setAttribute('aria-expanded', String(abrir));
      });
    }
    document.addEventListener('toggle', conferirRolagem, true);
    addEventListener('resize', conferirRolagem);
    addEventListener('hashchange', abrirDestino);
    // No papel sai tudo; depois, cada coisa volta a ser como estava.
    var dobrados = [];
    addEventListener('beforeprint', function () {
      dobrados = Array.from(document.querySelectorAll('details:not([open])'));
      dobrados.forEach(function (d) { d.open = true; });
    });
    addEventListener('afterprint', function () { dobrados.forEach(function (d) { d.open = false; }); });
    conferirRolagem();
    abrirDestino();
  });
})();
